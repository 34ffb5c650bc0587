#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster {

/// The state of a process of the job, as all readers see it. All numbers but that of kFinished are
/// on disk in histories; the journal, the wire and the REST interface have the words.
enum class NodeState : uint8_t {
  kPlanned,   // not started yet in this run
  kStarting,  // runs, but has not been heard of, or restores its partitions
  kRunning,
  kLost,      // runs, as far as is known, but sends nothing
  kDraining,  // runs, and is to hand over what it has, or to end
  kExited,    // ended; it may be started again
  kFinished,  // ended, and is not started any more
  kWaiting,   // was ordered, and has no process yet: the cluster has no place for it now
};
/// "planned", "starting", ...
std::string_view ToString(NodeState state);
/// None if the word is unknown.
std::optional<NodeState> ParseNodeState(std::string_view word);
/// The same, as proto/fields reads it; `state` is left alone when it is false.
inline bool FromWord(std::string_view word, NodeState* state) {
  const std::optional<NodeState> parsed = ParseNodeState(word);
  if (parsed.has_value()) *state = *parsed;
  return parsed.has_value();
}

/// The drain of a node's process: a worker hands back its shards, a server writes snapshots.
enum class DrainState : uint8_t {
  kNone,  // not requested
  kDraining,
  kDrained,  // it has finished, or its time is over
};
/// "none", "draining", "drained".
std::string_view ToString(DrainState state);
/// False, and `state` unchanged, if the word is unknown.
bool FromWord(std::string_view word, DrainState* state);

/// Every word, by number.
std::span<const std::string_view> WordsOf(NodeState state);
std::span<const std::string_view> WordsOf(DrainState state);

/// What the master learns of a node.
enum class NodeNews : uint8_t {
  kToldStarted,  // reported by the process that started it
  kHeard,        // by its own call
  kSilent,       // for too long
  kToldExited,   // reported by the process that started it
  kRunBegan,     // a new run began, so every process of earlier runs is dead
};
/// True if the node's process calls the master itself: master and scaler do not.
enum class NodeSpeaks : uint8_t { kNo, kYes };

/// The only way in which the state of a node changes, as the master knows it: kStarting, kRunning,
/// kLost and kExited. A new node is kStarting.
constexpr NodeState StateAfter(NodeState now, NodeNews news, NodeSpeaks speaks) {
  switch (news) {
    case NodeNews::kToldStarted:
      // A node that does not call the master is running as soon as it is started. A node that calls
      // may have done so before.
      if (speaks == NodeSpeaks::kNo || now == NodeState::kRunning) return NodeState::kRunning;
      return NodeState::kStarting;
    case NodeNews::kHeard:
      return NodeState::kRunning;
    case NodeNews::kSilent:
      return now == NodeState::kRunning ? NodeState::kLost : now;
    case NodeNews::kToldExited:
    case NodeNews::kRunBegan:
      return NodeState::kExited;
  }
  return now;
}

}  // namespace muster
