#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "proto/messages/node_place.h"

namespace muster::kubernetes {

/// The stage of a pod's life.
enum class PodStage {
  /// It has no node yet, and the scheduler has not said why.
  kPending,
  /// The scheduler finds no node now. `message` has its reason.
  kUnschedulable,
  /// It has a node, but its container does not run yet.
  kStarting,
  /// Its image is not available (ErrImagePull, ImagePullBackOff, InvalidImageName, ...).
  kImageError,
  /// Its container cannot be made (a missing secret or config map, a bad command).
  kConfigError,
  kRunning,
  /// Its container has failed and is about to be restarted.
  kRestarting,
  kSucceeded,
  kFailed,
  /// The API server does not know.
  kUnknown,
};

/// Why a pod failed, or its container before the last restart.
enum class PodFailure {
  kNone,
  kExit,
  /// It was killed by a signal. 137 alone does not mean out of memory.
  kSignal,
  kOutOfMemory,
  /// Its node evicted it because the node lacked a resource. There may be no status of a container.
  kEvicted,
  /// Other reasons that Kubernetes gives (DeadlineExceeded, NodeAffinity, Shutdown, ...).
  kOther,
};

/// The result of the last in-place resize.
enum class PodResize {
  kNone,
  /// The node can never do it. Replace the pod.
  kInfeasible,
  /// The node cannot do it now. Wait.
  kDeferred,
  kInProgress,
};

/// What the JSON of a pod says about the pod and about one of its containers.
struct PodState {
  std::string name;
  std::string uid;
  /// Empty if it has none yet.
  std::string node;
  PodStage stage = PodStage::kUnknown;
  PodFailure failure = PodFailure::kNone;
  /// Why Kubernetes removes it. It may still be running.
  Disruption disruption = Disruption::kNone;
  PodResize resize = PodResize::kNone;
  /// Kubernetes' own word ("OOMKilled") and sentence for the stage, the failure or the disruption.
  std::string reason;
  std::string message;
  /// The exit code of the container, if it has ended, or of its last run if it was restarted.
  std::optional<int> exit_code;
  /// The signal, if the exit code or the status names one.
  std::optional<int> signal;
  int64_t restarts = 0;
  /// It has a deletionTimestamp, so it will go, whatever its stage says.
  bool being_deleted = false;
};

/// Reads the JSON of a pod. If `container` is empty, its first container counts. Pure; anything may
/// be missing.
PodState ReadPodState(const nlohmann::json& pod, std::string_view container = "");

/// The words for tables and logs, such as "image error".
std::string_view ToText(PodStage stage);
std::string_view ToText(PodFailure failure);
std::string_view ToText(PodResize resize);

/// One line for people: "failed: out of memory (exit code 137)".
std::string Describe(const PodState& state);

}  // namespace muster::kubernetes
