#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace muster {

/// The kinds of the master's events (MasterEvent). A master of another version may have others.
inline constexpr auto kMasterEventKinds = std::to_array<std::string_view>({
    "dead-letters-held",    "dead-letters-writable",
    "drain-began",          "drain-timeout",
    "epoch-committed",      "granting-resumed",
    "granting-stopped",     "group-told",
    "group-untold",         "job-ended",
    "lease-expired",        "master-restarted",
    "metrics-dropped",      "node-back",
    "node-drain-began",     "node-drained",
    "node-exited",          "node-lost",
    "node-resumed",         "node-started",
    "partitions-restored",  "record-rejected",
    "restore-error",        "restored",
    "retention-far",        "retention-near",
    "run-started",          "server-registered",
    "shard-failed",         "shard-failure",
    "shard-handed-back",    "shard-lost",
    "shards-retried",       "snapshot-error",
    "snapshots-work-again", "stopped-early",
    "stream-gone",          "stream-grown-again",
    "stream-partitions",    "stream-reachable",
    "stream-truncated",     "stream-unreachable",
    "table-registered",     "warm-start-error",
    "weights-kept",         "worker-joined",
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

}  // namespace muster
