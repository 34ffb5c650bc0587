#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "verify/checker.h"
#include "verify/group_checker.h"
#include "verify/recovery.h"

namespace muster::verify {

/// The sum of what the workers of a run wrote down.
struct Histories {
  AttemptLog attempts;
  WorkerRecoveries recoveries;
  StepLog steps;  // only of a group
};
/// Reads all files of the folder. Errors name the file.
absl::StatusOr<Histories> ReadHistories(const std::string& folder, const Workload& workload);

/// The process that wrote a file: "worker-0-2.history" belongs to the second start of worker-0.
/// InvalidArgument names the file. Pure.
absl::StatusOr<ProcessName> ProcessOfFile(const std::string& path);

/// The paths of the files in a folder, sorted. Errors name the folder.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& folder);

/// Finds out from the ends of the histories whether all members of a group make steps. Not
/// thread-safe.
class GroupWatch {
 public:
  GroupWatch(std::string histories, uint32_t workers)
      : histories_(std::move(histories)), workers_(workers) {}
  /// True if the newest process of every worker has applied a step that nobody had applied at the
  /// first call. If a file cannot be read now, its worker counts as one without a step.
  bool IsWhole();

 private:
  std::string histories_;
  uint32_t workers_;
  std::optional<uint64_t> newest_before_;
};

}  // namespace muster::verify
