#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "host/resources.h"

/// The orders of people and policies, as plain values. They go from the REST interface to the code
/// that carries them out. `kAbout` of each order has its other properties, such as its name in
/// events and how its outcome is measured.
///
/// NodeKeeper ignores an order that no longer fits, for example because the node does not exist, is
/// in another life, or is a worker that leaves. While a job drains, it takes only orders that help
/// the job to take its snapshots: new limits, and a restart of a server that is down. When the job
/// is over, it takes no order.
namespace muster::scaler {

/// How one can see that an order has been carried out.
enum class Effect : uint8_t {
  kNone,      // no figure shows it; it takes effect at once
  kByMaster,  // no figure shows it; the master is called after the event is recorded
  kBack,      // its node works again
  kLimits,    // its node has other limits
  kWorkers,   // there is another number of workers
  kLeft,      // its node has left, or the job drains
  kEnded,     // the job has ended
};
/// One action, under its name in events (docs/rest.md).
struct ActionAbout {
  std::string_view name;
  Effect effect = Effect::kNone;
  /// Its event records the state before it: the start number of the node, the rate of the job.
  bool notes_before = false;
  /// It ends its target, a node or the whole job.
  bool ends = false;
};

/// Sends SIGTERM to a node that runs, and SIGKILL after the job's drain timeout. Then the node is
/// started again, and its exit is no crash. If the node has ended already, the order only excuses
/// its exit: the exit counts toward no crash loop (unless `charged`), and the node waits no longer
/// than it must.
struct RestartNode {
  static constexpr ActionAbout kAbout{
      .name = "restart", .effect = Effect::kBack, .notes_before = true, .ends = true};
  std::string node;
  std::string why;
  /// The limits of the next start. None if they stay the same.
  std::optional<Resources> limits;
  /// The order is only for this life, whether it runs or has just ended. So a repetition does no
  /// harm.
  std::optional<uint64_t> only_start;
  bool charged = false;
  /// The node will probably not react to SIGTERM, so it does not get the time for a drain.
  bool hangs = false;
};

/// Changes the limits of the running process and of later starts. An absent limit stays as it is; 0
/// removes it.
struct ResizeNode {
  static constexpr ActionAbout kAbout{
      .name = "resize", .effect = Effect::kLimits, .notes_before = true};
  std::string node;
  std::optional<double> cpus;
  std::optional<uint64_t> memory_bytes;

  static ResizeNode To(std::string node, const Resources& limits) {
    return {std::move(node), limits.cpus, limits.memory_bytes};
  }
  Resources After(const Resources& before) const {
    return {.cpus = cpus.value_or(before.cpus),
            .memory_bytes = memory_bytes.value_or(before.memory_bytes)};
  }
};

/// The number of workers that should live. If it grows, new workers get the lowest free numbers.
/// The number of a finished worker is free, but not that of a worker that is still leaving. If it
/// falls, workers that wait for a place leave first, then those with the highest numbers. They
/// leave as by EndNode.
struct ScaleWorkers {
  static constexpr ActionAbout kAbout{
      .name = "scale", .effect = Effect::kWorkers, .notes_before = true};
  uint32_t workers = 0;  // more than kWorkersMax counts as kWorkersMax
};

/// A worker hands over what it has and is not started again. A server takes snapshots of its
/// partitions and stays.
struct EndNode {
  static constexpr ActionAbout kAbout{
      .name = "drain", .effect = Effect::kLeft, .notes_before = true, .ends = true};
  std::string node;
};

/// Writes the stacks of all threads of a node's process into its log.
struct DumpStacks {
  static constexpr ActionAbout kAbout{.name = "dump-stacks"};
  std::string node;
};

/// The job cannot continue: asks the master to end it as failed.
struct FailJob {
  static constexpr ActionAbout kAbout{.name = "stop-job", .effect = Effect::kEnded, .ends = true};
  std::string reason;
};

/// A policy stops deciding, or decides again. This also holds under later scalers.
struct SetPaused {
  static constexpr ActionAbout kAbout{.name = "pause-policy"};
  static constexpr ActionAbout kUndo{.name = "resume-policy"};
  std::string policy;
  bool paused = true;
};

// The master carries out the following orders. The code that receives the order calls it.
struct DrainJob {
  static constexpr ActionAbout kAbout = EndNode::kAbout;
};
struct CancelJob {
  static constexpr ActionAbout kAbout{.name = "cancel", .effect = Effect::kEnded, .ends = true};
};
struct RetryShards {
  static constexpr ActionAbout kAbout{.name = "retry-shards", .effect = Effect::kByMaster};
  /// The ids of FAILED shards. If a person names none, all FAILED shards are meant.
  std::vector<std::string> ids;
};
template <typename T>
concept MastersOrder =
    std::same_as<T, DrainJob> || std::same_as<T, CancelJob> || std::same_as<T, RetryShards>;

using Order = std::variant<RestartNode, ResizeNode, ScaleWorkers, FailJob, EndNode, DumpStacks,
                           CancelJob, RetryShards, SetPaused, DrainJob>;

/// Every action, in the order of Order's alternatives.
const std::vector<ActionAbout>& AllActions();
/// The names of all actions and the meaning of an empty name: "restart, resize, ...; empty: none".
std::string_view ActionsText();
/// The present name of an action. Events that version 0.1 kept have relaunch, set-limits and
/// set-workers instead. Any other name stays the same.
std::string_view NameToday(std::string_view action);
/// For an unknown name, an action without a name and an effect.
ActionAbout AboutAction(std::string_view name);
std::string ActionName(const Order& order);
/// A node, a policy, "workers" or "job".
std::string TargetOf(const Order& order);
bool IsMasters(const Order& order);

/// An order that a person wants, and the reason, which may be "".
struct Wish {
  Order order;
  std::string reason;
};

}  // namespace muster::scaler
