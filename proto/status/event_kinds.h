#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {

/// The kinds of the master's events (MasterEvent). A master of another version may have others.
inline constexpr auto kMasterEventKinds = std::to_array<std::string_view>({
    "cluster-away",
    "cluster-back",
    "dead-letters-held",
    "dead-letters-writable",
    "drain-began",
    "drain-timeout",
    "epoch-committed",
    "granting-resumed",
    "granting-stopped",
    "group-began",
    "group-changed",
    "group-member-evicted",
    "group-member-refused",
    "group-rolled-back",
    "group-states-differ",
    "group-sums-differ",
    "group-sums-stall",
    "group-told",
    "group-untold",
    "job-ended",
    "lease-expired",
    "master-restarted",
    "metrics-dropped",
    "node-back",
    "node-config-error",
    "node-deleted",
    "node-drain-began",
    "node-drained",
    "node-evicted",
    "node-exited",
    "node-forbidden",
    "node-image-error",
    "node-lost",
    "node-machine-drained",
    "node-machine-lost",
    "node-placed",
    "node-preempted",
    "node-quota",
    "node-resize-deferred",
    "node-resize-refused",
    "node-resized",
    "node-resumed",
    "node-started",
    "node-unschedulable",
    "outputs-error",
    "outputs-work-again",
    "partitions-restored",
    "record-rejected",
    "restore-error",
    "restored",
    "retention-far",
    "retention-near",
    "run-started",
    "server-reachable",
    "server-registered",
    "server-unreachable",
    "shard-failed",
    "shard-failure",
    "shard-handed-back",
    "shard-lost",
    "shards-retried",
    "snapshot-error",
    "snapshots-work-again",
    "stopped-early",
    "stream-gone",
    "stream-grown-again",
    "stream-partitions",
    "stream-reachable",
    "stream-truncated",
    "stream-unreachable",
    "table-registered",
    "warm-start-error",
    "weights-kept",
    "worker-joined",
});

/// One of kMasterEventKinds: any other word does not compile. So the list is complete.
class MasterEventKind {
 public:
  // A literal is meant to be one.
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval MasterEventKind(const char* word) : word_(word) {
    if (std::ranges::find(kMasterEventKinds, word_) == kMasterEventKinds.end()) {
      throw "kMasterEventKinds lacks this kind";
    }
  }
  constexpr std::string_view word() const { return word_; }

 private:
  std::string_view word_;
};

/// A process ended by itself, or was killed.
inline constexpr MasterEventKind kNodeExited = "node-exited";
/// True for the event of the end of a process, whatever its cause.
constexpr bool IsExitKind(std::string_view kind) {
  constexpr auto kKinds =
      std::to_array<MasterEventKind>({kNodeExited, "node-evicted", "node-preempted",
                                      "node-machine-drained", "node-machine-lost", "node-deleted"});
  return std::ranges::any_of(kKinds, [&](MasterEventKind each) { return each.word() == kind; });
}

}  // namespace muster
