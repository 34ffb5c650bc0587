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

/// The orders of people and policies, from the REST interface to the code that carries them out.
/// Plain values. `kAbout` of each has its other properties: its name in events, and how its outcome
/// is measured.
///
/// NodeKeeper: an order that no longer fits (no such node, another life, a worker that leaves)
/// changes nothing. A job that drains takes only what helps it to its snapshots: limits, and a
/// server that is down started again. A job that is over takes none.
namespace muster::scaler {

/// How it shows that an order has been carried out.
enum class Effect : uint8_t {
  kNone,      // in no figure; it takes effect at once
  kByMaster,  // in no figure; the master is called after the event is recorded
  kBack,      // its node works again
  kLimits,    // its node has other limits
  kWorkers,   // there is another number of workers
  kLeft,      // its node has left, or the job drains
  kEnded,     // the job has ended
};
/// One action, as events have it (docs/rest.md).
struct ActionAbout {
  std::string_view name;
  Effect effect = Effect::kNone;
  /// Its event notes what was before: the start of its node, the rate of the job.
  bool notes_before = false;
  /// Its target, a node or the whole job, ends by it.
  bool ends = false;
};

/// A node that runs gets SIGTERM, after the job's drain timeout SIGKILL, and is started again; the
/// exit is no crash. One that has ended already is only excused: its exit counts toward no crash
/// loop (unless `charged`), and it waits no longer than it must.
struct RestartNode {
  static constexpr ActionAbout kAbout{
      .name = "restart", .effect = Effect::kBack, .notes_before = true, .ends = true};
  std::string node;
  std::string why;
  /// The limits of the next start; none: unchanged.
  std::optional<Resources> limits;
  /// Only for this life, running or just ended, so a repetition is harmless.
  std::optional<uint64_t> only_start;
  bool charged = false;
  /// It will probably not react to SIGTERM, so it does not get the time of a drain.
  bool hangs = false;
};

/// Limits in place, where it runs, and of its later starts. Absent: as it is; 0: none.
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

/// The number of workers that should live. If it grows, new workers get the lowest free numbers,
/// also of finished workers, but not of one that still leaves. If it falls, workers that wait
/// for a place leave first, then the highest numbers, as by EndNode.
struct ScaleWorkers {
  static constexpr ActionAbout kAbout{
      .name = "scale", .effect = Effect::kWorkers, .notes_before = true};
  uint32_t workers = 0;  // at most kWorkersMax; more counts as that
};

/// A worker hands over what it has and is not started again; a server has its partitions
/// snapshotted and stays.
struct EndNode {
  static constexpr ActionAbout kAbout{
      .name = "drain", .effect = Effect::kLeft, .notes_before = true, .ends = true};
  std::string node;
};

/// The stacks of all threads of a node's process are to be written into its log.
struct DumpStacks {
  static constexpr ActionAbout kAbout{.name = "dump-stacks"};
  std::string node;
};

/// The job cannot continue: asks the master to end it as failed.
struct FailJob {
  static constexpr ActionAbout kAbout{.name = "stop-job", .effect = Effect::kEnded, .ends = true};
  std::string reason;
};

/// A policy decides nothing, or decides again; for successors, too.
struct SetPaused {
  static constexpr ActionAbout kAbout{.name = "pause-policy"};
  static constexpr ActionAbout kUndo{.name = "resume-policy"};
  std::string policy;
  bool paused = true;
};

// The master carries these out; the receiver of the order calls it.
struct DrainJob {
  static constexpr ActionAbout kAbout = EndNode::kAbout;
};
struct CancelJob {
  static constexpr ActionAbout kAbout{.name = "cancel", .effect = Effect::kEnded, .ends = true};
};
struct RetryShards {
  static constexpr ActionAbout kAbout{.name = "retry-shards", .effect = Effect::kByMaster};
  /// Of FAILED shards; a person who names none means all of them.
  std::vector<std::string> ids;
};
template <typename T>
concept MastersOrder =
    std::same_as<T, DrainJob> || std::same_as<T, CancelJob> || std::same_as<T, RetryShards>;

using Order = std::variant<RestartNode, ResizeNode, ScaleWorkers, FailJob, EndNode, DumpStacks,
                           CancelJob, RetryShards, SetPaused, DrainJob>;

/// Every action by its name, in the order of Order's alternatives.
const std::vector<ActionAbout>& AllActions();
/// Their names, and what an empty one means: "restart, resize, ...; empty: none".
std::string_view ActionsText();
/// The name of an action as it is today: version 0.1 said relaunch, set-limits and set-workers in
/// the events that it kept. Any other name stays as it is.
std::string_view NameToday(std::string_view action);
/// An action without a name and effect, for unknown names.
ActionAbout AboutAction(std::string_view name);
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
