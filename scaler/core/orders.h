#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "scaler/core/resources.h"

/// What people and policies want done, from the REST interface to whoever does it. Plain values.
/// `kAction` is an order's name in events (docs/rest.md).
///
/// NodeKeeper: an order that no longer fits (no such node, another life, a worker that leaves)
/// changes nothing. A job that drains takes only what helps it to its snapshots: limits, and a
/// server that is down started again. A job that is over takes none.
namespace muster::scaler {

/// A node that runs gets SIGTERM, after the job's drain timeout SIGKILL, and is started again; the
/// exit is no crash. One that has ended already is only excused: its exit counts toward no crash
/// loop (unless `charged`), and it waits no longer than it must.
struct RelaunchNode {
  static constexpr std::string_view kAction = "relaunch";
  std::string node;
  std::string why;
  /// Of the coming start; nothing: as they are.
  std::optional<Resources> limits;
  /// Only this life is meant, running or just ended: makes a repetition harmless.
  std::optional<uint64_t> only_start;
  bool charged = false;
  /// It is not expected to hear SIGTERM: it is not given the time of a drain.
  bool hangs = false;
};

/// Limits in place, where it runs, and of its later starts. Absent: as it is; 0: none.
struct LimitNode {
  static constexpr std::string_view kAction = "set-limits";
  std::string node;
  std::optional<double> cpus;
  std::optional<uint64_t> memory_bytes;

  static LimitNode To(std::string node, const Resources& limits) {
    return {std::move(node), limits.cpus, limits.memory_bytes};
  }
  Resources After(const Resources& before) const {
    return {.cpus = cpus.value_or(before.cpus),
            .memory_bytes = memory_bytes.value_or(before.memory_bytes)};
  }
};

/// So many workers are to live. More: the lowest numbers that are free, those of finished workers
/// among them, but none that still leaves. Fewer: the highest numbers leave as by EndNode.
struct ScaleWorkers {
  static constexpr std::string_view kAction = "set-workers";
  uint32_t workers = 0;  // at most kWorkersMax; more counts as that
};

/// A worker hands over what it has and is not started again; a server has its partitions
/// snapshotted and stays.
struct EndNode {
  static constexpr std::string_view kAction = "drain";
  std::string node;
};

/// The stacks of all threads of a node's process are to be written into its log.
struct DumpStacks {
  static constexpr std::string_view kAction = "dump-stacks";
  std::string node;
};

/// The job cannot go on: the master is asked to end it as failed.
struct FailJob {
  static constexpr std::string_view kAction = "stop-job";
  std::string reason;
};

/// A policy decides nothing, or decides again; for successors, too.
struct SetPaused {
  std::string policy;
  bool paused = true;
};

// The master does these, which is asked by who takes the order.
struct DrainJob {
  static constexpr std::string_view kAction = "drain";
};
struct CancelJob {
  static constexpr std::string_view kAction = "cancel";
};
struct RetryShards {
  static constexpr std::string_view kAction = "retry-shards";
  /// Of FAILED shards; a person who names none means all of them.
  std::vector<std::string> ids;
};
template <typename T>
concept MastersOrder =
    std::same_as<T, DrainJob> || std::same_as<T, CancelJob> || std::same_as<T, RetryShards>;

using Order = std::variant<RelaunchNode, LimitNode, ScaleWorkers, EndNode, DumpStacks, FailJob,
                           SetPaused, DrainJob, CancelJob, RetryShards>;

std::string ActionName(const Order& order);
/// A node, a policy, "workers" or "job".
std::string TargetOf(const Order& order);
bool IsMasters(const Order& order);

/// What a person wants, and why; the reason may be "".
struct Wish {
  Order order;
  std::string reason;
};

}  // namespace muster::scaler
