#include "scaler/decision/human_orders.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "scaler/decision/event_drafts.h"
#include "scaler/policy/room.h"

namespace muster::scaler {
namespace {

/// Of what a node uses: less room than this is no room.
constexpr double kMemoryAboveUse = 1.05;
/// Named in an event, of shards that are tried again.
constexpr size_t kShardsNamed = 20;

std::string Because(const std::string& reason) {
  return reason.empty() ? "asked for by a person" : reason;
}

rest::Event ActionEvent(const char* action, const std::string& target, std::string because) {
  return {.kind = "action", .target = target, .action = action, .because = std::move(because)};
}

template <typename Names>
std::string Listed(const Names& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

absl::StatusOr<HumanOrder> HumanOrders::Restart(const std::string& name,
                                                const rest::RestartOrder& order) const {
  MUSTER_ASSIGN_OR_RETURN(const NodeView* node, Find(name));
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (order.only_start.has_value() && *order.only_start != node->start) {
    return absl::AbortedError(
        fmt::format("only_start is {}, but {} has been started {} times: it was started again "
                    "meanwhile",
                    *order.only_start, name, node->start));
  }
  if (node->state == NodeState::kPlanned) {
    return absl::FailedPreconditionError(fmt::format("{} has not been started yet", name));
  }
  if (node->state == NodeState::kDraining && node->role == NodeRole::kWorker) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is ending as it was asked to; wait until it is there again, or gone", name));
  }
  return HumanOrder{
      .event = ActionEvent("relaunch", name, Because(order.reason)),
      .order = RelaunchNode{.node = name, .why = Because(order.reason), .only_start = node->start},
      .taken_as = Action::kRelaunch};
}

absl::StatusOr<HumanOrder> HumanOrders::DrainNode(const std::string& name,
                                                  const std::string& reason) const {
  MUSTER_ASSIGN_OR_RETURN(const NodeView* node, Find(name));
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (node->state == NodeState::kDraining) {
    return absl::FailedPreconditionError(fmt::format("{} is draining, or ending, already", name));
  }
  if (node->drained) {
    return absl::FailedPreconditionError(fmt::format(
        "{} was drained already: it goes on taking snapshots every spec.snapshots.interval", name));
  }
  if (node->role == NodeRole::kWorker) {
    if (facts_.workers <= 1) {
      return absl::FailedPreconditionError(fmt::format(
          "{} is the only worker, and without it nothing is trained: drain the job instead, or "
          "scale the workers up first",
          name));
    }
    const bool has_range = view_.workers_min < view_.workers_max;
    if (has_range && facts_.workers <= view_.workers_min) {
      return absl::FailedPreconditionError(
          fmt::format("without {} there would be {} workers, and the job file's minReplicas is {}: "
                      "scale the workers up first, or restart the node",
                      name, facts_.workers - 1, view_.workers_min));
    }
  } else if (node->state != NodeState::kRunning) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not serving now; a server that is drained takes snapshots", name));
  }
  return HumanOrder{.event = ActionEvent("drain", name, Because(reason)),
                    .order = EndNode{name},
                    .taken_as = Action::kDrain};
}

absl::StatusOr<HumanOrder> HumanOrders::Resize(const std::string& name,
                                               const rest::ResizeOrder& order) const {
  MUSTER_ASSIGN_OR_RETURN(const NodeView* node, Find(name));
  MUSTER_RETURN_IF_ERROR(IsNotOver());
  Resources after = node->limits;
  if (order.memory_bytes.has_value()) {
    MUSTER_RETURN_IF_ERROR(MayHaveMemory(*node, *order.memory_bytes));
    after.memory_bytes = *order.memory_bytes;
  }
  if (order.cpus.has_value()) {
    MUSTER_RETURN_IF_ERROR(MayHaveCpus(*node, *order.cpus));
    after.cpus = *order.cpus;
  }
  if (after == node->limits) {
    return absl::FailedPreconditionError(
        fmt::format("{} has these limits already: {}", name, ToString(after)));
  }
  HumanOrder granted{.event = ActionEvent("set-limits", name, Because(order.reason)),
                     .order = LimitNode{name, after},
                     .taken_as = Action::kSetLimits};
  Change change = ChangeOf(node->limits, after);
  granted.event.before = std::move(change.before);
  granted.event.after = std::move(change.after);
  return granted;
}

absl::StatusOr<HumanOrder> HumanOrders::Scale(uint32_t workers, const std::string& reason) const {
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (workers == 0) {
    return absl::OutOfRangeError("0 workers train nothing: drain the job instead");
  }
  const bool has_range = view_.workers_min < view_.workers_max;
  if (has_range && (workers < view_.workers_min || workers > view_.workers_max)) {
    return absl::FailedPreconditionError(
        fmt::format("{} workers: the job file allows {} to {} (minReplicas, maxReplicas)", workers,
                    view_.workers_min, view_.workers_max));
  }
  if (workers == facts_.workers) {
    return absl::FailedPreconditionError(fmt::format("there are {} workers already", workers));
  }
  const WorkerRoom room = RoomForWorkers(view_, workers);
  if (room.most < workers) {
    return absl::ResourceExhaustedError(
        fmt::format("{} workers: {} allows {}; ask for fewer, or raise it", workers,
                    ToString(room.bound, NodeRole::kWorker), room.most));
  }
  HumanOrder granted{.event = ActionEvent("set-workers", "workers", Because(reason)),
                     .order = ScaleWorkers{workers},
                     .taken_as = Action::kSetWorkers};
  Change change = ChangeOf(facts_.workers, workers);
  granted.event.before = std::move(change.before);
  granted.event.after = std::move(change.after);
  return granted;
}

absl::StatusOr<HumanOrder> HumanOrders::Pause(const std::string& policy,
                                              const std::string& reason) const {
  MUSTER_RETURN_IF_ERROR(KnowsPolicy(policy));
  if (facts_.paused.contains(policy)) {
    return absl::FailedPreconditionError(fmt::format("{} is paused already", policy));
  }
  return HumanOrder{.event = ActionEvent("pause-policy", policy, Because(reason))};
}

absl::StatusOr<HumanOrder> HumanOrders::Resume(const std::string& policy,
                                               const std::string& reason) const {
  MUSTER_RETURN_IF_ERROR(KnowsPolicy(policy));
  if (!facts_.paused.contains(policy)) {
    return absl::FailedPreconditionError(fmt::format("{} is not paused", policy));
  }
  return HumanOrder{.event = ActionEvent("resume-policy", policy, Because(reason))};
}

absl::StatusOr<HumanOrder> HumanOrders::DrainJob(const std::string& reason) const {
  MUSTER_RETURN_IF_ERROR(IsTraining());
  return HumanOrder{.event = ActionEvent("drain", "job", Because(reason))};
}

absl::StatusOr<HumanOrder> HumanOrders::CancelJob(const std::string& reason) const {
  MUSTER_RETURN_IF_ERROR(IsNotOver());
  return HumanOrder{.event = ActionEvent("cancel", "job", Because(reason))};
}

absl::StatusOr<HumanOrder> HumanOrders::RetryShards(const std::vector<std::string>& ids,
                                                    const std::string& reason) const {
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (ids.empty()) return absl::FailedPreconditionError("no shard is FAILED");
  const std::vector<std::string> named(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kShardsNamed)));
  std::string because =
      fmt::format("{}: shard{} {}", Because(reason), ids.size() == 1 ? "" : "s", Listed(named));
  if (ids.size() > named.size()) {
    because += fmt::format(" and {} more", ids.size() - named.size());
  }
  HumanOrder granted{.event = ActionEvent("retry-shards", "job", std::move(because))};
  granted.event.evidence = {{"shards", static_cast<double>(ids.size()), "shards", 0}};
  return granted;
}

absl::StatusOr<const NodeView*> HumanOrders::Find(const std::string& name) const {
  if (const NodeView* node = FindNode(view_, name)) return node;
  if (name == "master" || name == "scaler") {
    return absl::FailedPreconditionError(fmt::format(
        "{} is kept alive by `muster run`; only workers and servers take orders", name));
  }
  std::vector<std::string> names;
  for (const NodeView& node : view_.nodes) names.push_back(node.name);
  constexpr size_t kNamed = 20;
  const bool more = names.size() > kNamed;
  if (more) names.resize(kNamed);
  return absl::NotFoundError(fmt::format("there is no node '{}'; there are {}{}", name,
                                         Listed(names), more ? ", ..." : ""));
}

absl::Status HumanOrders::KnowsPolicy(const std::string& policy) const {
  if (std::ranges::find(facts_.policies, policy) != facts_.policies.end()) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("there is no policy '{}'; there are {}", policy, Listed(facts_.policies)));
}

absl::Status HumanOrders::IsNotOver() const {
  if (view_.activity != Activity::kOver) return absl::OkStatus();
  return absl::FailedPreconditionError("the job is over");
}

absl::Status HumanOrders::IsTraining() const {
  MUSTER_RETURN_IF_ERROR(IsNotOver());
  if (view_.activity != Activity::kDraining) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the job is being drained: run it again when it has ended, it goes on where it was");
}

absl::Status HumanOrders::MayHaveMemory(const NodeView& node, uint64_t bytes) const {
  if (node.min.memory_bytes > 0 && bytes < node.min.memory_bytes) {
    return absl::FailedPreconditionError(
        fmt::format("memory of {} for {}: the job file's minimum is {}", BytesText(bytes),
                    node.name, BytesText(node.min.memory_bytes)));
  }
  const Room room = RoomOf(view_, node);
  if (room.memory_bound != Bound::kNone && bytes > room.most.memory_bytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "memory of {} for {}: {} allows {}; ask for less, or raise it", BytesText(bytes), node.name,
        ToString(room.memory_bound, node.role), BytesText(room.most.memory_bytes)));
  }
  const bool lives = node.state != NodeState::kPlanned && node.state != NodeState::kDown;
  if (!lives || node.samples.empty()) return absl::OkStatus();
  const uint64_t used = node.samples.back().memory_bytes;
  const double least = std::ceil(kMemoryAboveUse * static_cast<double>(used));
  if (static_cast<double>(bytes) >= least) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "memory of {} for {}, which uses {}: it would be killed; give it {} at least",
      BytesText(bytes), node.name, BytesText(used), BytesText(static_cast<uint64_t>(least))));
}

absl::Status HumanOrders::MayHaveCpus(const NodeView& node, double cpus) const {
  if (!facts_.limits_remark.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("CPU of {} cannot be limited here: {}", node.name, facts_.limits_remark));
  }
  if (!(cpus > 0) || cpus < node.min.cpus) {
    return absl::OutOfRangeError(fmt::format("{:g} cores for {}: the least is {:g}", cpus,
                                             node.name, std::max(node.min.cpus, 0.01)));
  }
  const Room room = RoomOf(view_, node);
  if (room.cpu_bound == Bound::kNone || cpus <= room.most.cpus) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("{:g} cores for {}: {} allows {:.3g}; ask for less, or raise it", cpus, node.name,
                  ToString(room.cpu_bound, node.role), room.most.cpus));
}

}  // namespace muster::scaler
