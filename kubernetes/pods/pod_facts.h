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

/// The pid that is told of a process in a pod: of `muster node`, in the pod's own numbering.
inline constexpr uint64_t kPodProcess = 1;
/// Muster's container in each of its pods. An admission webhook may put others before it.
inline constexpr char kNodeContainer[] = "muster";

struct PodFacts {
  enum class Stage {
    kWaiting,
    kRunning,
    /// Its containers have ended, or never begin.
    kEnded,
  };
  std::string name;
  std::string uid;
  /// Its labels; `run` is empty and `start` is 0 if it has none, or they are no labels of ours.
  std::string job;
  std::string run;
  std::string node;
  uint32_t start = 0;
  /// The Job with the UID `run` owns it.
  bool owned = false;
  /// The container that is the node: the one called kNodeContainer, or the first if none is. Others
  /// do not count.
  std::string container;

  Stage stage = Stage::kWaiting;
  /// While it waits; kNone: it is on its way.
  NodeWait wait = NodeWait::kNone;
  std::string wait_reason;
  /// Its container runs, or has run.
  bool ran = false;
  /// It has a deletionTimestamp, and so long to end.
  bool being_deleted = false;
  std::chrono::seconds grace{30};
  /// Why Kubernetes takes it away; it may run still.
  Disruption disruption = Disruption::kNone;
  std::string disruption_text;
  PodResize resize = PodResize::kNone;
  /// The words that go with `resize`.
  std::string resize_text;
  /// That it has, or will have: a machine may put off a change.
  Resources limits;
  /// What it asks the scheduler for.
  Resources requests;
  /// That its container has now; none: the status does not say.
  std::optional<Resources> present_limits;
  /// When its container ended.
  std::optional<WallTime> ended_at;
  /// Of an ended one, without the disruption; with a memory limit only if its note says one.
  NodeExited exit;
};

PodFacts ReadPodFacts(const nlohmann::json& pod);

/// Whether one of its owners has this UID.
bool IsOwnedBy(const nlohmann::json& pod, std::string_view uid);

/// Adds what was known `before` of the same pod: its last states may lack conditions, or what its
/// container has.
void KeepKnown(const PodFacts& before, PodFacts* now);

/// In force, in bytes; 0: none.
uint64_t MemoryLimitOf(const PodFacts& pod);

/// The exit of a pod that has ended, has gone, or is lost with its node. `ordered`: we asked for
/// it, so it is no deletion by somebody else. A pod that went while it ran counts as killed.
NodeExited ExitOfPod(const PodFacts& pod, bool ordered);

/// The exit of a pod of which nothing is left.
NodeExited ExitOfVanished(const std::string& node, std::string text);

}  // namespace muster::kubernetes
