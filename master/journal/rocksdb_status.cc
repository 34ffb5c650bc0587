#include "master/journal/rocksdb_status.h"

#include <fmt/format.h>

#include <string_view>

namespace muster {

absl::Status DiskFull(const std::string& where) {
  return absl::ResourceExhaustedError(fmt::format(
      "{}: the disk is full. Nothing that was acknowledged is lost. Free space and run again",
      where));
}

absl::Status JournalStatus(const rocksdb::Status& status, const std::string& directory) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = status.ToString();
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  const std::string where = fmt::format("the journal {}: {}", directory, text);
  if (has("lock") && (has("Resource temporarily unavailable") || has("No locks available") ||
                      has("lock hold by current process"))) {
    return absl::UnavailableError(
        fmt::format("{}: another master has it open; a job can run only once. Stop the other "
                    "master first (if it is paused, kill it)",
                    where));
  }
  if (status.IsNoSpace() || has("No space left")) {
    return DiskFull(where);
  }
  if (has("Permission denied") || has("Read-only file system")) {
    return absl::PermissionDeniedError(fmt::format(
        "{}: it is not writable; change its permissions or spec.stateDirectory", where));
  }
  // Files that are missing, or whose first lines no version of RocksDB has written.
  if (status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound() ||
      status.IsNotSupported() || status.IsInvalidArgument()) {
    return absl::DataLossError(
        fmt::format("{}: it is damaged. Put its files back as they were, or restore the state "
                    "directory from a backup, or begin again with another spec.stateDirectory",
                    where));
  }
  return absl::InternalError(where);
}

}  // namespace muster
