#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "proto/messages/node_place.h"

namespace muster::kubernetes {

/// Where a pod is in its life.
enum class PodStage {
  /// No node yet, and the scheduler has not said why.
  kPending,
  /// The scheduler finds no node now: `message` is its reason.
  kUnschedulable,
  /// Has a node; its container is not running yet.
  kStarting,
  /// Its image cannot be had (ErrImagePull, ImagePullBackOff, InvalidImageName, ...).
  kImageError,
  /// Its container cannot be made (a missing secret or config map, a bad command).
  kConfigError,
  kRunning,
  /// Its container has failed and is about to be started again.
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
  /// Killed by a signal. 137 alone does not say out of memory.
  kSignal,
  kOutOfMemory,
  /// By its node, which lacked a resource. There may be no status of a container.
  kEvicted,
  /// Other reasons that Kubernetes gives (DeadlineExceeded, NodeAffinity, Shutdown, ...).
  kOther,
};

/// The last in-place resize.
enum class PodResize {
  kNone,
  /// The node could never do it: replace the pod.
  kInfeasible,
  /// The node cannot do it now: wait.
  kDeferred,
  kInProgress,
};

/// What the JSON of a pod says about it and about one of its containers.
struct PodState {
  std::string name;
  std::string uid;
  /// Empty: none yet.
  std::string node;
  PodStage stage = PodStage::kUnknown;
  PodFailure failure = PodFailure::kNone;
  /// Why Kubernetes takes it away. It may be running still.
  Disruption disruption = Disruption::kNone;
  PodResize resize = PodResize::kNone;
  /// Kubernetes' own word ("OOMKilled") and sentence for the stage, the failure or the disruption.
  std::string reason;
  std::string message;
  /// Of the container, if it has ended, or of its last run if it was restarted.
  std::optional<int> exit_code;
  /// If the exit code or the status names one.
  std::optional<int> signal;
  int64_t restarts = 0;
  /// It has a deletionTimestamp: it will go, whatever its stage says.
  bool being_deleted = false;
};

/// Reads the JSON of a pod. `container` empty: its first. Pure; anything may be missing.
PodState ReadPodState(const nlohmann::json& pod, std::string_view container = "");

/// The words of tables and logs: "image error".
std::string_view ToText(PodStage stage);
std::string_view ToText(PodFailure failure);
std::string_view ToText(PodResize resize);

/// In one line, for people: "failed: out of memory (exit code 137)".
std::string Describe(const PodState& state);

}  // namespace muster::kubernetes
