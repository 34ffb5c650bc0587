#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "host/messages.h"
#include "host/resources.h"
#include "kubernetes/pods/pod_facts.h"

/// PodBook's state of one node. Plain values.
namespace muster::kubernetes {

/// Errors in a row, and when the next try may begin.
struct Retry {
  uint32_t failures = 0;
  TimePoint at{};
};

/// A pod that exists.
struct Pod {
  PodFacts facts;
  TimePoint seen_at{};
  /// Its machine does not answer, so nobody knows if its process lives; its exit counts as told.
  bool lost = false;

  /// Set: it is to go, with this grace. It only ever gets shorter.
  std::optional<std::chrono::seconds> grace;
  /// The server has taken the deletion with that grace.
  bool deletion_taken = false;
  uint64_t deletion_call = 0;  // in flight; 0: none
  Retry deletion;
  /// When it was first seen as being deleted.
  std::optional<TimePoint> leaving_since;

  bool ended() const { return facts.stage == PodFacts::Stage::kEnded; }
  /// Its process may do something that counts.
  bool lives() const { return !ended() && !lost; }
};

/// A start that was ordered or found, until it is released.
struct Life {
  enum class Stage {
    kToCreate,
    kCreating,
    /// A pod of that name may be there: ask.
    kToLook,
    kLooking,
    /// Its pod was seen.
    kThere,
    /// Its exit was reported.
    kOver,
  };
  StartNode order;
  std::string name;
  Stage stage = Stage::kToCreate;
  std::string uid;  // of its pod, once seen
  uint64_t call = 0;
  Retry retry;
  /// Set: it is to end, with this grace.
  std::optional<std::chrono::seconds> ending;

  bool told_start = false;
  /// None: nothing was told of it yet, as of a found one.
  std::optional<NodeWait> told_wait;
  std::string told_reason;

  /// Limits that the running pod should get; a call is in flight if `resize_call` is not 0.
  std::optional<Resources> resize;
  uint64_t resize_call = 0;
  Retry resize_retry;
  /// Limits that the API server has taken; what became of them is not reported yet.
  std::optional<Resources> resizing;
  bool told_deferred = false;
  /// Limits that its machine, or the API server, has refused to this pod.
  std::optional<Resources> refused;
};

struct NodePods {
  std::string name;
  /// By start.
  std::map<uint32_t, Pod> pods;
  std::optional<Life> life;
  /// The highest start that was ordered or found.
  uint32_t last_start = 0;
};

}  // namespace muster::kubernetes
