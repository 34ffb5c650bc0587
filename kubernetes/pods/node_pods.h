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

/// The state of one node in PodBook. Plain values.
namespace muster::kubernetes {

/// The number of errors in a row, and when the next try may begin.
struct Retry {
  uint32_t failures = 0;
  TimePoint at{};
};

/// A pod that exists.
struct Pod {
  PodFacts facts;
  TimePoint seen_at{};
  /// Its machine does not answer, so nobody knows whether its process lives. It counts as ended.
  bool lost = false;

  /// If set, the pod must go, with this grace period, which only becomes shorter.
  std::optional<std::chrono::seconds> grace;
  /// The server has accepted the deletion with that grace period.
  bool deletion_taken = false;
  uint64_t deletion_call = 0;  // in flight; 0: none
  Retry deletion;
  /// When it was first seen to be in deletion.
  std::optional<TimePoint> leaving_since;

  bool ended() const { return facts.stage == PodFacts::Stage::kEnded; }
  /// True if its process may still do something that counts.
  bool lives() const { return !ended() && !lost; }
};

/// A start that was ordered or found. It lasts until it is released.
struct Life {
  enum class Stage {
    kToCreate,
    kCreating,
    /// A pod of that name may exist, so the server must be asked.
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
  std::string uid;  // of its pod, once that was seen
  uint64_t call = 0;
  Retry retry;
  /// If set, the start must end, with this grace period.
  std::optional<std::chrono::seconds> ending;

  bool told_start = false;
  /// None if nothing was reported about it yet. A found start begins so, too.
  std::optional<NodeWait> told_wait;
  std::string told_reason;

  /// Limits that the running pod should get; a call is in flight if `resize_call` is not 0.
  std::optional<Resources> resize;
  uint64_t resize_call = 0;
  Retry resize_retry;
  /// Limits that the API server has accepted. Their result is not reported yet.
  std::optional<Resources> resizing;
  bool told_deferred = false;
  /// Limits that the machine or the API server has refused for this pod.
  std::optional<Resources> refused;
};

struct NodePods {
  std::string name;
  /// By number of the start.
  std::map<uint32_t, Pod> pods;
  std::optional<Life> life;
  /// The highest start that was ordered or found.
  uint32_t last_start = 0;
};

}  // namespace muster::kubernetes
