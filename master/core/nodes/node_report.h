#pragma once

#include <cstdint>
#include <string>

#include "base/words/types.h"
#include "proto/messages/node_place.h"
#include "proto/messages/node_role.h"

namespace muster {

/// What the supervisor reports of a node.
struct NodeReport {
  enum class What : uint8_t { kStarted, kExited, kHeld, kResized };
  std::string node;
  NodeRole role = NodeRole::kWorker;
  /// Which process of the node, from 1.
  StartNumber start{1};
  uint64_t pid = 0;  // for people
  What what = What::kStarted;
  uint32_t signal = 0;  // 0: none
  uint32_t exit_code = 0;
  /// The token of the shard that the trainer was computing; none: no shard.
  LeaseToken computing_token;
  uint32_t minibatches_started = 0;
  /// Of the worker's process that ended; 0: not known.
  uint64_t incarnation = 0;
  std::string text;
  std::string host;                 // of a node that `muster join` runs; empty: the scaler runs it
  NodeWait wait = NodeWait::kNone;  // kHeld: why it has no process yet
  Disruption disruption = Disruption::kNone;         // kExited: why its place was taken away
  ResizeAnswer resize_answer = ResizeAnswer::kDone;  // kResized
};

}  // namespace muster
