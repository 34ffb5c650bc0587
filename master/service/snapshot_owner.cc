#include "master/service/snapshot_owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/status.h"
#include "master/service/snapshot_files.h"

namespace muster {
namespace {

constexpr uint64_t kMarkerBytesMax = 64 << 10;

constexpr char kMarker[] = "OWNER";

/// Three lines: job_id, name, state directory.
std::string Encode(const SnapshotOwner& owner) {
  return fmt::format("{}\n{}\n{}\n", owner.job_id, owner.job, owner.state_directory);
}

/// None: there is no marker.
absl::StatusOr<std::optional<SnapshotOwner>> ReadMarker(ObjectStore* store) {
  absl::StatusOr<std::string> text = store->Get(kMarker, kMarkerBytesMax);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (!text.ok()) return text.status();
  std::vector<std::string> lines(1);
  for (char c : *text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  if (lines.size() < 4 || lines[0].empty()) {
    return absl::DataLossError(
        fmt::format("{} is damaged. It says which job the snapshots in this folder belong to. If "
                    "they belong to this job, delete it",
                    store->Shown(kMarker)));
  }
  return SnapshotOwner{lines[0], lines[1], lines[2]};
}

bool IsInside(const std::string& folder, const std::string& outer) {
  const auto relative = std::filesystem::path(folder).lexically_relative(outer);
  return !outer.empty() && !relative.empty() && *relative.begin() != "..";
}

std::string Describe(const SnapshotOwner& owner) {
  return fmt::format("'{}' with the state directory {}", owner.job, owner.state_directory);
}

/// The weights exist, but the journal, which names the valid files, is gone.
absl::Status JournalGone(const std::string& directory, const SnapshotOwner& owner) {
  return absl::FailedPreconditionError(fmt::format(
      "the journal of the job '{}' is missing from {}, but {} still has the job's snapshots. "
      "Without the journal it is not known which snapshots belong together. If there is a copy of "
      "{}/journal, put it back and run the job again. To begin again, give the job another "
      "spec.stateDirectory, and another spec.snapshots.directory if it is set. Nothing has been "
      "deleted",
      owner.job, owner.state_directory, directory, owner.state_directory));
}

}  // namespace

absl::Status CheckSnapshotDirectory(ObjectStore* store, const SnapshotOwner& owner,
                                    const std::set<std::string>& named) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<SnapshotOwner> marked, ReadMarker(store));
  if (marked.has_value()) {
    if (marked->job_id == owner.job_id) return absl::OkStatus();
    // A state directory that was copied holds the snapshots, but the marker names the first place.
    const bool came_along = IsInside(store->place(), owner.state_directory);
    if (marked->job == owner.job &&
        (came_along || marked->state_directory == owner.state_directory)) {
      return JournalGone(store->place(), owner);
    }
    return absl::FailedPreconditionError(fmt::format(
        "the snapshots in {} belong to another job: to {}, not to {}. Give this job another "
        "spec.snapshots.directory. If you do not need the other job's weights, delete the folder",
        store->place(), Describe(*marked), Describe(owner)));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListSnapshots(store));
  if (files.empty() || IsInside(store->place(), owner.state_directory) ||
      std::ranges::any_of(files, [&](const auto& file) { return named.contains(file); })) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(fmt::format(
      "the job {1} does not know the snapshots in {0} ({2} files, such as {3}), so they belong to "
      "another job. Give this job another spec.snapshots.directory. If you do not need the "
      "snapshots, delete the folder",
      store->place(), Describe(owner), files.size(), files.front()));
}

bool IsOnlyUnseen(const absl::Status& claimed) {
  return absl::IsUnavailable(claimed) || absl::IsPermissionDenied(claimed);
}

absl::Status ClaimSnapshotDirectory(ObjectStore* store, const SnapshotOwner& owner,
                                    const std::set<std::string>& named) {
  MUSTER_RETURN_IF_ERROR(CheckSnapshotDirectory(store, owner, named));
  MUSTER_ASSIGN_OR_RETURN(const std::optional<SnapshotOwner> marked, ReadMarker(store));
  if (marked.has_value()) return absl::OkStatus();
  const absl::Status status = store->PutNew(kMarker, Encode(owner));
  if (absl::IsResourceExhausted(status) && IsInside(store->place(), owner.state_directory)) {
    Log(LogLevel::kWarning, "{}. The job continues, but the folder is not marked as this job's",
        Message(status));
    return absl::OkStatus();
  }
  if (absl::IsAlreadyExists(status)) return CheckSnapshotDirectory(store, owner, named);
  return status;
}

}  // namespace muster
