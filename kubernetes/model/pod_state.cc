#include "kubernetes/model/pod_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "kubernetes/model/json_access.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr size_t kPodMessageBytesMax = 500;
/// A shell reports signal N as 128 + N, and container runtimes do so, too.
constexpr int kSignalBase = 128;
constexpr int kSignalMax = 64;

template <size_t N>
bool IsOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool IsImageError(std::string_view reason) {
  static constexpr std::array<std::string_view, 6> kReasons{
      "ErrImagePull",      "ImagePullBackOff",  "InvalidImageName",
      "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"};
  return IsOneOf(reason, kReasons);
}

bool IsConfigError(std::string_view reason) {
  static constexpr std::array<std::string_view, 5> kReasons{
      "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
      "PreStartHookError", "PostStartHookError"};
  return IsOneOf(reason, kReasons);
}

void Say(std::string reason, const std::string& message, PodState* state) {
  if (reason.empty() && message.empty()) return;
  state->reason = std::move(reason);
  state->message = Excerpt(message, kPodMessageBytesMax);
}

/// Reads the `terminated` state of a container.
void ReadEnd(const Json& terminated, PodState* state) {
  if (!terminated.is_object()) return;
  const int code = static_cast<int>(IntegerAt(terminated, {"exitCode"}, 0));
  int signal = static_cast<int>(IntegerAt(terminated, {"signal"}, 0));
  if (signal == 0 && code > kSignalBase && code <= kSignalBase + kSignalMax) {
    signal = code - kSignalBase;
  }
  state->exit_code = code;
  if (signal > 0) state->signal = signal;
  const std::string reason = TextAt(terminated, {"reason"});
  Say(reason, TextAt(terminated, {"message"}), state);
  // 137 stands for any SIGKILL. It was for memory only if the runtime says so.
  if (reason == "OOMKilled") {
    state->failure = PodFailure::kOutOfMemory;
  } else if (signal > 0) {
    state->failure = PodFailure::kSignal;
  } else if (code != 0) {
    state->failure = PodFailure::kExit;
  }
}

void ReadFailed(const Json& pod, const Json& container, PodState* state) {
  state->stage = PodStage::kFailed;
  ReadEnd(ValueAt(container, {"state", "terminated"}), state);
  const std::string reason = TextAt(pod, {"status", "reason"});
  if (reason.empty()) {
    if (state->failure == PodFailure::kNone) state->failure = PodFailure::kOther;
    return;
  }
  Say(reason, TextAt(pod, {"status", "message"}), state);
  state->failure = reason == "Evicted" ? PodFailure::kEvicted : PodFailure::kOther;
}

void ReadWaiting(const Json& container, PodState* state) {
  const Json& waiting = ValueAt(container, {"state", "waiting"});
  const std::string reason = TextAt(waiting, {"reason"});
  ReadEnd(ValueAt(container, {"lastState", "terminated"}), state);
  Say(reason, TextAt(waiting, {"message"}), state);
  if (IsImageError(reason)) {
    state->stage = PodStage::kImageError;
  } else if (IsConfigError(reason)) {
    state->stage = PodStage::kConfigError;
  } else {
    state->stage = state->restarts > 0 ? PodStage::kRestarting : PodStage::kStarting;
  }
}

void ReadPending(const Json& pod, const Json& container, PodState* state) {
  if (container.is_object()) return ReadWaiting(container, state);
  if (!state->node.empty()) {
    state->stage = PodStage::kStarting;
    return;
  }
  const Json& unscheduled = ConditionOf(pod, "PodScheduled", "False");
  Say(TextAt(unscheduled, {"reason"}), TextAt(unscheduled, {"message"}), state);
  state->stage = state->reason == "Unschedulable" ? PodStage::kUnschedulable : PodStage::kPending;
}

void ReadRunning(const Json& container, PodState* state) {
  if (ValueAt(container, {"state", "waiting"}).is_object()) return ReadWaiting(container, state);
  state->stage = PodStage::kRunning;
  const Json& ended = ValueAt(container, {"state", "terminated"});
  // The pod still runs, because another container does, or because this one is about to be
  // restarted.
  ReadEnd(ended.is_object() ? ended : ValueAt(container, {"lastState", "terminated"}), state);
}

/// True if the node does not answer. In that case, the node controller says that the pod is not
/// ready any more, while the kubelet's last words stay: its containers run and are ready.
bool IsNodeSilent(const Json& pod, const Json& container) {
  const bool taken_back = ConditionOf(pod, "Ready", "False").is_object() ||
                          ConditionOf(pod, "Ready", "Unknown").is_object();
  return taken_back && ConditionOf(pod, "ContainersReady", "True").is_object() &&
         ValueAt(container, {"state", "running"}).is_object();
}

Disruption DisruptionOf(std::string_view reason, bool is_node_silent) {
  if (reason == "PreemptionByScheduler") return Disruption::kPreempted;
  // A node that is well may also be tainted, in order to empty it.
  if (reason == "DeletionByTaintManager") {
    return is_node_silent ? Disruption::kNodeLost : Disruption::kDrained;
  }
  if (reason == "DeletionByPodGC") return Disruption::kNodeLost;
  if (reason == "EvictionByEvictionAPI") return Disruption::kDrained;
  // The node lacks a resource, or it shuts down.
  if (reason == "TerminationByKubelet") return Disruption::kEvicted;
  return Disruption::kDeleted;
}

void ReadDisruption(const Json& pod, const Json& container, PodState* state) {
  const Json& target = ConditionOf(pod, "DisruptionTarget", "True");
  if (target.is_object()) {
    state->disruption = DisruptionOf(TextAt(target, {"reason"}), IsNodeSilent(pod, container));
    // The reason of a failure says more than the reason of the disruption that caused it.
    if (state->failure == PodFailure::kNone) {
      Say(TextAt(target, {"reason"}), TextAt(target, {"message"}), state);
    }
  } else if (TextAt(pod, {"status", "reason"}) == "NodeLost") {
    state->disruption = Disruption::kNodeLost;
    Say("NodeLost", TextAt(pod, {"status", "message"}), state);
  }
  if (state->failure == PodFailure::kEvicted) state->disruption = Disruption::kEvicted;
}

PodResize ResizeOf(const Json& pod) {
  const std::string pending = TextAt(ConditionOf(pod, "PodResizePending", "True"), {"reason"});
  if (pending == "Infeasible") return PodResize::kInfeasible;
  if (pending == "Deferred") return PodResize::kDeferred;
  return ConditionOf(pod, "PodResizeInProgress", "True").is_object() ? PodResize::kInProgress
                                                                     : PodResize::kNone;
}

}  // namespace

PodState ReadPodState(const nlohmann::json& pod, std::string_view container_name) {
  const ObjectIdentity identity = IdentityOf(pod);
  const Json& container = ContainerStatusOf(pod, container_name);
  const std::string phase = TextAt(pod, {"status", "phase"});
  PodState state{
      .name = identity.name, .uid = identity.uid, .node = TextAt(pod, {"spec", "nodeName"})};
  state.restarts = IntegerAt(container, {"restartCount"}, 0);
  if (phase == "Pending") {
    ReadPending(pod, container, &state);
  } else if (phase == "Running") {
    ReadRunning(container, &state);
  } else if (phase == "Succeeded") {
    state.stage = PodStage::kSucceeded;
    ReadEnd(ValueAt(container, {"state", "terminated"}), &state);
  } else if (phase == "Failed") {
    ReadFailed(pod, container, &state);
  }
  ReadDisruption(pod, container, &state);
  state.resize = ResizeOf(pod);
  state.being_deleted = ValueAt(pod, {"metadata", "deletionTimestamp"}).is_string();
  return state;
}

std::string_view ToText(PodStage stage) {
  static constexpr std::array<std::string_view, 10> kTexts{
      "pending", "no node has room", "starting",  "image error", "cannot start",
      "running", "restarting",       "succeeded", "failed",      "unknown"};
  return kTexts[static_cast<size_t>(stage)];
}

std::string_view ToText(PodFailure failure) {
  static constexpr std::array<std::string_view, 6> kTexts{
      "", "exited", "killed by a signal", "out of memory", "evicted by its node", "failed"};
  return kTexts[static_cast<size_t>(failure)];
}

std::string_view ToText(PodResize resize) {
  static constexpr std::array<std::string_view, 4> kTexts{
      "", "its node can never resize it", "its node cannot resize it now", "being resized"};
  return kTexts[static_cast<size_t>(resize)];
}

std::string Describe(const PodState& state) {
  std::string text(ToText(state.stage));
  if (state.failure != PodFailure::kNone) text += fmt::format(": {}", ToText(state.failure));
  if (state.signal) {
    text += fmt::format(" (signal {})", *state.signal);
  } else if (state.exit_code) {
    text += fmt::format(" (exit code {})", *state.exit_code);
  }
  if (state.disruption != Disruption::kNone) {
    text += fmt::format(", {}", ToString(state.disruption));
  }
  if (state.resize != PodResize::kNone) text += fmt::format(", {}", ToText(state.resize));
  if (state.being_deleted) text += ", being deleted";
  if (!state.message.empty()) {
    text += fmt::format(": {}", state.message);
  } else if (!state.reason.empty()) {
    text += fmt::format(" ({})", state.reason);
  }
  return text;
}

}  // namespace muster::kubernetes
