#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "host/messages.h"
#include "kubernetes/model/pod_state.h"

/// What the pod of a node says about the node. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The pid that is reported for a process in a pod. It is that of `muster node`, in the pod's own
/// numbering.
inline constexpr uint64_t kPodProcess = 1;
/// Muster's container in each of its pods. An admission webhook may put others before it.
inline constexpr char kNodeContainer[] = "muster";

struct PodFacts {
  enum class Stage {
    kWaiting,
    kRunning,
    /// Its containers have ended, or will never begin.
    kEnded,
  };
  std::string name;
  std::string uid;
  /// Its labels. If it has none, or if they are not ours, `run` is empty and `start` is 0.
  std::string job;
  std::string run;
  std::string node;
  uint32_t start = 0;
  /// The Job with the UID `run` owns it.
  bool owned = false;
  /// The container of the node: the one called kNodeContainer, or the first if none has this name.
  /// Other containers do not count.
  std::string container;

  Stage stage = Stage::kWaiting;
  /// Why it waits. kNone if it is on its way.
  NodeWait wait = NodeWait::kNone;
  std::string wait_reason;
  /// Its container runs, or has run.
  bool ran = false;
  /// It has a deletionTimestamp, and this much time to end.
  bool being_deleted = false;
  std::chrono::seconds grace{30};
  /// Why Kubernetes removes it. It may still run.
  Disruption disruption = Disruption::kNone;
  std::string disruption_text;
  PodResize resize = PodResize::kNone;
  /// Kubernetes' words about `resize`.
  std::string resize_text;
  /// The limits that it has or will have, because a machine may delay a change.
  Resources limits;
  /// What it requests from the scheduler.
  Resources requests;
  /// The limits that its container has now. None if the status does not say.
  std::optional<Resources> present_limits;
  /// When its container ended.
  std::optional<WallTime> ended_at;
  /// The exit, if it has ended. It lacks the disruption, and has a memory limit only if its note
  /// says one.
  NodeExited exit;
};

PodFacts ReadPodFacts(const nlohmann::json& pod);

/// True if one of its owners has this UID.
bool IsOwnedBy(const nlohmann::json& pod, std::string_view uid);

/// Adds what was known `before` about the same pod. Its last states may lack conditions, or the
/// data of its container.
void KeepKnown(const PodFacts& before, PodFacts* now);

/// The limit in force, in bytes; 0 if there is none.
uint64_t MemoryLimitOf(const PodFacts& pod);

/// The exit of a pod that has ended, is gone, or is lost with its node. `ordered` says that we
/// asked for it, so nobody else has deleted it. A pod that went while it ran counts as killed.
NodeExited ExitOfPod(const PodFacts& pod, bool ordered);

/// The exit of a pod that has left nothing.
NodeExited ExitOfVanished(const std::string& node, std::string text);

}  // namespace muster::kubernetes
