#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster {

/// Where a process of the job is, for everybody who asks. Numbers 0 to 5 are on disk in histories;
/// the journal, the wire and the REST interface have the words.
enum class NodeState : uint8_t {
  kPlanned,   // not started yet in this run
  kStarting,  // runs, but has not been heard of, or restores its partitions
  kRunning,
  kLost,      // runs, as far as anybody knows, but is not heard
  kDraining,  // runs, and is to hand over what it has, or to end
  kExited,    // ended; it may be started again
  kFinished,  // ended, and is not started any more
};
/// "planned", "starting", ...
std::string_view ToString(NodeState state);
/// None: it is no such word.
std::optional<NodeState> ParseNodeState(std::string_view word);
/// The same, as proto/fields reads it; `state` is left alone when it is false.
inline bool FromWord(std::string_view word, NodeState* state) {
  const std::optional<NodeState> parsed = ParseNodeState(word);
  if (parsed.has_value()) *state = *parsed;
  return parsed.has_value();
}

/// Whether a node's process is to hand over what it has: a worker its shards, a server what its
/// snapshots lack.
enum class DrainState : uint8_t {
  kNone,  // nobody asked for it
  kDraining,
  kDrained,  // it came to its end, or ran out of time
};
/// "none", "draining", "drained".
std::string_view ToString(DrainState state);
/// False, and `state` as it was: it is no such word.
bool FromWord(std::string_view word, DrainState* state);

/// Every word, by number.
std::span<const std::string_view> WordsOf(NodeState state);
std::span<const std::string_view> WordsOf(DrainState state);

/// What the master learns of a node.
enum class NodeNews : uint8_t {
  kToldStarted,  // by who started it
  kHeard,        // by a word of its own
  kSilent,       // for too long
  kToldExited,   // by who started it
  kRunBegan,     // another run did: every process of those before is dead
};
/// Whether the node's process has words of its own: master and scaler have none for the master.
enum class NodeSpeaks : uint8_t { kNo, kYes };

/// The only way in which the state of a node changes, as the master knows it: kStarting, kRunning,
/// kLost and kExited. A new node is kStarting.
constexpr NodeState StateAfter(NodeState now, NodeNews news, NodeSpeaks speaks) {
  switch (news) {
    case NodeNews::kToldStarted:
      // That it is there is all that there is to know of one that does not speak. Who speaks may
      // have been heard before.
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
