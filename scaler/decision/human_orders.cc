#include "scaler/decision/human_orders.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/text.h"
#include "scaler/decision/event_drafts.h"
#include "scaler/policy/room.h"

namespace muster::scaler {
namespace {

/// The share of a node's usage below which there is no room.
constexpr double kMemoryAboveUse = 1.05;
/// The most shards that an event names.
constexpr size_t kShardsNamed = 20;

template <typename Names>
std::string Listed(const Names& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Judges one wish; one function for each order that people may give.
class HumanJudge {
 public:
  HumanJudge(const std::string& reason, const JobView& view, const HumanFacts& facts)
      : because_(reason.empty() ? "a person gave this order" : reason),
        view_(view),
        facts_(facts) {}

  absl::StatusOr<Granted> operator()(const RestartNode& order) const;
  absl::StatusOr<Granted> operator()(const ResizeNode& order) const;
  absl::StatusOr<Granted> operator()(const ScaleWorkers& order) const;
  absl::StatusOr<Granted> operator()(const EndNode& order) const;
  absl::StatusOr<Granted> operator()(const DumpStacks&) const { return OfPolicies(); }
  absl::StatusOr<Granted> operator()(const FailJob&) const { return OfPolicies(); }
  absl::StatusOr<Granted> operator()(const SetPaused& order) const;
  absl::StatusOr<Granted> operator()(const DrainJob& order) const;
  absl::StatusOr<Granted> operator()(const CancelJob& order) const;
  absl::StatusOr<Granted> operator()(const RetryShards& order) const;

 private:
  static absl::Status OfPolicies() {
    return absl::UnimplementedError("only policies give this order");
  }
  Granted Grant(Order order, Change change = {}) const;
  absl::StatusOr<const NodeView*> Find(const std::string& node) const;
  absl::Status KnowsPolicy(const std::string& policy) const;
  absl::Status IsTraining() const;
  absl::Status IsNotOver() const;
  /// OK if a synchronous group has enough members with so many workers.
  absl::Status KeepsGroup(uint32_t workers) const;
  absl::Status MayHaveMemory(const NodeView& node, uint64_t bytes) const;
  absl::Status MayHaveCpus(const NodeView& node, double cpus) const;

  const std::string because_;
  const JobView& view_;
  const HumanFacts& facts_;
};

Granted HumanJudge::Grant(Order order, Change change) const {
  rest::Event event{.kind = "action",
                    .target = TargetOf(order),
                    .action = ActionName(order),
                    .before = std::move(change.before),
                    .after = std::move(change.after),
                    .because = because_};
  return {.event = std::move(event), .order = std::move(order)};
}

absl::StatusOr<Granted> HumanJudge::operator()(const RestartNode& order) const {
  const std::string& name = order.node;
  MUSTER_ASSIGN_OR_RETURN(const NodeView* node, Find(name));
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (order.only_start.has_value() && *order.only_start != node->start) {
    return absl::AbortedError(
        fmt::format("only_start is {}, but {} has been started {} times, so it has restarted in "
                    "the meantime",
                    *order.only_start, name, node->start));
  }
  if (node->state == NodeState::kPlanned) {
    return absl::FailedPreconditionError(fmt::format("{} has not been started yet", name));
  }
  if (node->state == NodeState::kDraining && node->role == NodeRole::kWorker) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is ending because of an order; wait until it runs again or has left", name));
  }
  return Grant(RestartNode{.node = name, .why = because_, .only_start = node->start});
}

absl::StatusOr<Granted> HumanJudge::operator()(const EndNode& order) const {
  const std::string& name = order.node;
  if (FindNode(view_, name) == nullptr && facts_.joined.contains(name)) {
    MUSTER_RETURN_IF_ERROR(IsTraining());
    Granted granted = Grant(order);
    granted.event.evidence = {{kJoinedFigure, 1, "", 0}};
    return granted;
  }
  MUSTER_ASSIGN_OR_RETURN(const NodeView* node, Find(name));
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (node->state == NodeState::kDraining) {
    return absl::FailedPreconditionError(fmt::format("{} is already draining or ending", name));
  }
  if (node->drained) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is already drained; it takes snapshots every spec.snapshots.interval as before", name));
  }
  if (node->role == NodeRole::kWorker) {
    if (facts_.workers <= 1) {
      return absl::FailedPreconditionError(fmt::format(
          "{} is the only worker, and without it the job does not train: drain the job instead, or "
          "scale the workers up first",
          name));
    }
    MUSTER_RETURN_IF_ERROR(KeepsGroup(facts_.workers - 1));
    const bool has_range = view_.workers_min < view_.workers_max;
    if (has_range && facts_.workers <= view_.workers_min) {
      return absl::FailedPreconditionError(
          fmt::format("without {} there would be {} workers, and the job file's minReplicas is {}: "
                      "scale the workers up first, or restart the node",
                      name, facts_.workers - 1, view_.workers_min));
    }
  } else if (node->state != NodeState::kRunning) {
    return absl::FailedPreconditionError(
        fmt::format("{} does not serve now, so it cannot take the snapshots of a drain", name));
  }
  return Grant(order);
}

absl::Status HumanJudge::KeepsGroup(uint32_t workers) const {
  const uint32_t least = view_.members_min;
  // If the plan already wants fewer workers, the other members come from other machines.
  if (workers >= least || facts_.workers < least) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("with {}, the group would make no step: it needs {} (spec.group.minMembers)",
                  CountText(workers, "worker"), CountText(least, "member")));
}

absl::StatusOr<Granted> HumanJudge::operator()(const ResizeNode& order) const {
  MUSTER_ASSIGN_OR_RETURN(const NodeView* node, Find(order.node));
  MUSTER_RETURN_IF_ERROR(IsNotOver());
  if (order.memory_bytes.has_value()) {
    MUSTER_RETURN_IF_ERROR(MayHaveMemory(*node, *order.memory_bytes));
  }
  if (order.cpus.has_value()) {
    MUSTER_RETURN_IF_ERROR(MayHaveCpus(*node, *order.cpus));
  }
  const Resources after = order.After(node->limits);
  if (after == node->limits) {
    return absl::FailedPreconditionError(
        fmt::format("{} has these limits already: {}", order.node, ToString(after)));
  }
  return Grant(ResizeNode::To(order.node, after), ChangeOf(node->limits, after));
}

absl::StatusOr<Granted> HumanJudge::operator()(const ScaleWorkers& order) const {
  const uint32_t workers = order.workers;
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (workers == 0) {
    return absl::OutOfRangeError("a job with 0 workers does not train: drain the job instead");
  }
  MUSTER_RETURN_IF_ERROR(KeepsGroup(workers));
  const bool has_range = view_.workers_min < view_.workers_max;
  if (has_range && (workers < view_.workers_min || workers > view_.workers_max)) {
    return absl::FailedPreconditionError(
        fmt::format("{} workers: the job file allows {} to {} (minReplicas, maxReplicas)", workers,
                    view_.workers_min, view_.workers_max));
  }
  if (workers == facts_.workers) {
    return absl::FailedPreconditionError(fmt::format("the job already has {} workers", workers));
  }
  const WorkerRoom room = RoomForWorkers(view_, workers);
  if (room.most < workers) {
    return absl::ResourceExhaustedError(
        fmt::format("{} workers: {} has room for {} in all; ask for fewer workers", workers,
                    ToString(room.bound, NodeRole::kWorker), room.most));
  }
  return Grant(order, ChangeOf(facts_.workers, workers));
}

absl::StatusOr<Granted> HumanJudge::operator()(const SetPaused& order) const {
  MUSTER_RETURN_IF_ERROR(KnowsPolicy(order.policy));
  if (facts_.paused.contains(order.policy) == order.paused) {
    return absl::FailedPreconditionError(
        fmt::format("{} is {}", order.policy, order.paused ? "paused already" : "not paused"));
  }
  return Grant(order);
}

absl::StatusOr<Granted> HumanJudge::operator()(const DrainJob& order) const {
  MUSTER_RETURN_IF_ERROR(IsTraining());
  return Grant(order);
}

absl::StatusOr<Granted> HumanJudge::operator()(const CancelJob& order) const {
  MUSTER_RETURN_IF_ERROR(IsNotOver());
  return Grant(order);
}

absl::StatusOr<Granted> HumanJudge::operator()(const RetryShards& order) const {
  const std::vector<std::string>& ids = order.ids;
  MUSTER_RETURN_IF_ERROR(IsTraining());
  if (ids.empty()) return absl::FailedPreconditionError("no shard is FAILED");
  const std::vector<std::string> named(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), kShardsNamed)));
  Granted granted = Grant(order);
  std::string& because = granted.event.because;
  because += fmt::format(": shard{} {}", ids.size() == 1 ? "" : "s", Listed(named));
  if (ids.size() > named.size()) {
    because += fmt::format(" and {} more", ids.size() - named.size());
  }
  granted.event.evidence = {{"shards", static_cast<double>(ids.size()), "shards", 0}};
  return granted;
}

absl::StatusOr<const NodeView*> HumanJudge::Find(const std::string& name) const {
  if (const NodeView* node = FindNode(view_, name)) return node;
  if (name == "master" || name == "scaler") {
    return absl::FailedPreconditionError(fmt::format(
        "`muster run` starts and watches the {}; only workers and servers take orders", name));
  }
  if (const auto joined = facts_.joined.find(name); joined != facts_.joined.end()) {
    return absl::FailedPreconditionError(
        fmt::format("`muster join` runs {} on {}, where the scaler can neither restart nor resize "
                    "it: do that there. `muster drain {}` drains it",
                    name, joined->second, name));
  }
  if (view_.nodes.empty()) {
    return absl::NotFoundError(fmt::format(
        "there is no node '{}': the scaler runs none now. `muster status` shows the job's state",
        name));
  }
  std::vector<std::string> names;
  for (const NodeView& node : view_.nodes) names.push_back(node.name);
  constexpr size_t kNamed = 20;
  const bool more = names.size() > kNamed;
  if (more) names.resize(kNamed);
  return absl::NotFoundError(fmt::format("there is no node '{}'; there are {}{}", name,
                                         Listed(names), more ? ", ..." : ""));
}

absl::Status HumanJudge::KnowsPolicy(const std::string& policy) const {
  if (std::ranges::find(facts_.policies, policy) != facts_.policies.end()) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("there is no policy '{}'; there are {}", policy, Listed(facts_.policies)));
}

absl::Status HumanJudge::IsNotOver() const {
  if (view_.activity != Activity::kOver) return absl::OkStatus();
  return absl::FailedPreconditionError("the job is over");
}

absl::Status HumanJudge::IsTraining() const {
  MUSTER_RETURN_IF_ERROR(IsNotOver());
  if (view_.activity != Activity::kDraining) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the job is draining. When it has ended, run it again, and it continues from there");
}

absl::Status HumanJudge::MayHaveMemory(const NodeView& node, uint64_t bytes) const {
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
  const bool lives = node.state != NodeState::kPlanned && node.state != NodeState::kExited;
  if (!lives || node.samples.empty()) return absl::OkStatus();
  const uint64_t used = node.samples.back().memory_bytes;
  const double least = std::ceil(kMemoryAboveUse * static_cast<double>(used));
  if (static_cast<double>(bytes) >= least) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "memory of {} for {}: it uses {}, so it would be killed; give it at least {}",
      BytesText(bytes), node.name, BytesText(used), BytesText(static_cast<uint64_t>(least))));
}

absl::Status HumanJudge::MayHaveCpus(const NodeView& node, double cpus) const {
  if (!facts_.limits_remark.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("CPU of {} cannot be limited here: {}", node.name, facts_.limits_remark));
  }
  if (!(cpus > 0) || cpus < node.min.cpus) {
    return absl::OutOfRangeError(fmt::format("{:g} cores for {}: the minimum is {:g}", cpus,
                                             node.name, std::max(node.min.cpus, 0.01)));
  }
  const Room room = RoomOf(view_, node);
  if (room.cpu_bound == Bound::kNone || cpus <= room.most.cpus) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("{:g} cores for {}: {} allows {:.3g}; ask for less, or raise it", cpus, node.name,
                  ToString(room.cpu_bound, node.role), room.most.cpus));
}

}  // namespace

absl::StatusOr<Granted> Judge(const Wish& wish, const JobView& view, const HumanFacts& facts) {
  return std::visit(HumanJudge(wish.reason, view, facts), wish.order);
}

}  // namespace muster::scaler
