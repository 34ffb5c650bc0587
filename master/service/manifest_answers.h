#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/master_core.h"
#include "proto/admin.pb.h"

namespace muster {

/// What a manifest is made of.
struct ManifestFacts {
  std::vector<Manifest> partitions;
  std::map<TableId, TableSpec> tables;
  DoneSeq commit_seq;
  JobState state = JobState::kUnknown;
  /// None: the job has no group.
  std::optional<GroupModelRecord> model;
  std::optional<CheckpointRecord> checkpoint;
};
/// Of the snapshots that count now.
ManifestFacts ManifestFactsOf(const MasterCore& core);
/// Of what is asked for. kNotFound if the weights of the epoch are not kept.
absl::StatusOr<ManifestFacts> KeptManifestOf(const MasterCore& core,
                                             const v1::GetManifestRequest& request);
/// The files of the snapshots and of the group's state.
std::vector<std::string> FilesOf(const ManifestFacts& facts);
/// How long the files stay for the one who asked for the manifest: an hour at most. An export reads
/// every file twice, perhaps from a slow store.
std::chrono::milliseconds TimeToRead(const ManifestFacts& facts);
void FillManifest(const ManifestFacts& facts, const std::string& snapshot_directory,
                  v1::GetManifestResponse* to);

}  // namespace muster
