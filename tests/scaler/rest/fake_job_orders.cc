#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "tests/scaler/rest/fake_job_api.h"

/// What people ask the fake job for.
namespace muster::scaler::rest::testing {
namespace {

constexpr uint64_t kMemoryBudgetBytes = 2ull << 30;

}  // namespace

absl::Status FakeJobApi::CheckTakesOrders() {
  if (!options_.live || job_.state == JobState::kRunning || job_.state == JobState::kDraining) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("the job has ended ({}): it takes no orders", ToString(job_.state)));
}

void FakeJobApi::SetWorkers(uint32_t workers) {
  job_.workers_wanted = workers;
  std::erase_if(nodes_, [](const Node& node) { return node.role == "worker"; });
  for (uint32_t i = 0; i < workers; ++i) {
    nodes_.push_back(MakeNode(fmt::format("worker-{}", i), "worker", 103 + i));
  }
}

Event FakeJobApi::Later(Event cause, Becomes becomes, const std::string& because) {
  constexpr uint64_t kSteps = 4;
  if (options_.live) {
    pending_.push_back({.step = step_ + kSteps,
                        .cause_id = cause.id,
                        .target = cause.target,
                        .becomes = becomes,
                        .because = because});
  }
  return cause;
}

absl::StatusOr<Event> FakeJobApi::Give(const Wish& wish) {
  return std::visit([&](const auto& order) { return Take(order, wish.reason); }, wish.order);
}

absl::StatusOr<Event> FakeJobApi::Take(const DrainJob&, const std::string& reason) {
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  job_.state = JobState::kDraining;
  return Later(Act("drain", "job", reason), {.job = JobState::kDrained},
               "all shards are handed back");
}

absl::StatusOr<Event> FakeJobApi::Take(const CancelJob&, const std::string& reason) {
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  EndJob(JobState::kCancelled);
  return Act("cancel", "job", reason);
}

absl::StatusOr<Event> FakeJobApi::Take(const RestartNode& order, const std::string& reason) {
  const std::string& node = order.node;
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  MUSTER_ASSIGN_OR_RETURN(Node* const found, Find(node));
  if (order.only_start && *order.only_start != found->start) {
    return absl::AbortedError(
        fmt::format("{} has start {}, not {}", node, found->start, *order.only_start));
  }
  ++found->start;
  ++found->restarts;
  if (!options_.live) return Act("restart", node, reason);
  found->state = NodeState::kStarting;
  found->last_exit = "ended on request";
  return Later(Act("restart", node, reason), {}, "it trains again after 1.0 s");
}

absl::StatusOr<Event> FakeJobApi::Take(const EndNode& order, const std::string& reason) {
  const std::string& node = order.node;
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  MUSTER_ASSIGN_OR_RETURN(Node* const found, Find(node));
  found->drain = settle_ ? DrainState::kDrained : DrainState::kDraining;
  return found->role == "worker"
             ? Later(Act("drain", node, reason), {.node = NodeState::kExited},
                     "its shards run elsewhere")
             : Later(Act("drain", node, reason), {}, "all its partitions are snapshotted");
}

absl::StatusOr<Event> FakeJobApi::Take(const ResizeNode& order, const std::string& reason) {
  const std::string& node = order.node;
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  MUSTER_ASSIGN_OR_RETURN(Node* const found, Find(node));
  if (options_.live && order.memory_bytes.value_or(0) > kMemoryBudgetBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("{} bytes are more than the {} that the job's budget leaves",
                    *order.memory_bytes, kMemoryBudgetBytes));
  }
  Event event{.kind = "action", .target = node, .action = "resize", .because = reason};
  if (order.cpus) {
    event.before["cpus"] = found->limits.cpus;
    event.after["cpus"] = found->limits.cpus = *order.cpus;
  }
  if (order.memory_bytes) {
    event.before["memory_bytes"] = static_cast<double>(found->limits.memory_bytes);
    found->limits.memory_bytes = *order.memory_bytes;
    event.after["memory_bytes"] = static_cast<double>(*order.memory_bytes);
  }
  return Later(Add(event), {}, "the limits hold");
}

absl::StatusOr<Event> FakeJobApi::Take(const ScaleWorkers& order, const std::string& reason) {
  const uint32_t workers = order.workers;
  constexpr uint32_t kBudget = 8;
  if (workers > kBudget) {
    return absl::ResourceExhaustedError(
        fmt::format("{} workers are more than the job's budget of {}", workers, kBudget));
  }
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  const Event event = Act("scale", "workers", reason);
  if (!options_.live) return event;
  SetWorkers(workers);
  return Later(event, {}, fmt::format("{} workers train", workers));
}

absl::StatusOr<Event> FakeJobApi::Take(const RetryShards& order, const std::string& reason) {
  const std::vector<std::string>& ids = order.ids;
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  for (const std::string& id : ids) {
    const auto at = std::ranges::find(shards_, id, &ShardStatus::id);
    if (at == shards_.end() || at->state != "failed") {
      return absl::FailedPreconditionError(fmt::format("shard {} is not FAILED", id));
    }
  }
  if (options_.live) {
    const auto again = [&ids](const ShardStatus& shard) {
      return shard.state == "failed" && (ids.empty() || std::ranges::count(ids, shard.id) > 0);
    };
    for (const ShardStatus& shard : shards_) {
      if (again(shard)) states_[shard.epoch][shard.index] = "todo";
    }
    std::erase_if(shards_, again);
    CountShards();
  }
  return Act("retry-shards", "job", reason);
}

absl::StatusOr<Event> FakeJobApi::Take(const SetPaused& order, const std::string& reason) {
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(CheckTakesOrders());
  const auto at = std::ranges::find(policies_, order.policy, &Policy::name);
  if (at == policies_.end()) {
    return absl::NotFoundError(fmt::format("there is no policy '{}'", order.policy));
  }
  at->paused = order.paused;
  return Act(ActionName(order), order.policy, reason);
}

}  // namespace muster::scaler::rest::testing
