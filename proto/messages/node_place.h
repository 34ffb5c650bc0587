#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// A node's place in a cluster: why it has none yet, why it was taken away, and what became of
/// another size. The wire and documents have the words. Plain values.
namespace muster {

/// Why a cluster took the place of a node away. The numbers are on disk in histories.
enum class Disruption : uint8_t {
  kNone,
  kEvicted,    // its machine lacked a resource
  kPreempted,  // for something of a higher priority
  kDrained,    // somebody empties its machine
  /// Its machine does not answer. The process may live on; leases and epochs keep it from doing
  /// anything that counts.
  kNodeLost,
  kDeleted,  // by somebody other than the scaler
};

/// Why a node that was ordered to start has no process yet.
enum class NodeWait : uint8_t {
  kNone,           // it is on its way
  kUnschedulable,  // no machine has room for it
  kImage,          // its image cannot be had
  kQuota,          // a quota of the cluster is used up
  kForbidden,      // the scaler has not the right to start it
  kConfig,         // its container cannot be made
  kUnreachable,    // the cluster cannot be asked
};

/// What became of limits that a running node was to get in place, where this takes time.
enum class ResizeAnswer : uint8_t {
  kDone,
  kDeferred,  // its machine has no room for them now; the cluster tries again by itself
  kRefused,   // its machine can never give them
};

/// "none", "evicted", "preempted", "drained", "node-lost", "deleted".
std::string_view ToString(Disruption disruption);
/// "none", "unschedulable", "image", "quota", "forbidden", "config", "unreachable".
std::string_view ToString(NodeWait wait);
/// "done", "deferred", "refused".
std::string_view ToString(ResizeAnswer answer);
/// False, and the value unchanged, if the word is unknown.
bool FromWord(std::string_view word, Disruption* disruption);
bool FromWord(std::string_view word, NodeWait* wait);
bool FromWord(std::string_view word, ResizeAnswer* answer);
/// Every word, by number.
std::span<const std::string_view> WordsOf(Disruption disruption);
std::span<const std::string_view> WordsOf(NodeWait wait);
std::span<const std::string_view> WordsOf(ResizeAnswer answer);

/// "no machine has room for it: 0/3 nodes are available": for people. `words`: the cluster's own;
/// may be empty. Nothing for kNone.
std::string WaitText(NodeWait wait, std::string_view words);
/// What a person can do about it, as a sentence; "" for kNone.
std::string_view WaitAdvice(NodeWait wait);
/// "its machine does not answer any more": why a node ended, and the cluster's words. Nothing for
/// kNone.
std::string DisruptionText(Disruption disruption, std::string_view words);

}  // namespace muster
