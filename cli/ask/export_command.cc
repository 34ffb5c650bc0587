#include "cli/ask/export_command.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/show/output.h"
#include "job/file/load_job.h"
#include "proto/fields/generated.h"
#include "proto/fields/json.h"
#include "proto/messages/group_state.h"
#include "ps/export/export.h"
#include "ps/export/group_export.h"
#include "store/names/place.h"

namespace muster {
namespace {

/// True for the errors of a file that is gone, or that was deleted while it was read.
bool MayBeReplaced(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsInternal(status);
}

bool SamePartitions(const v1::GetManifestResponse& a, const v1::GetManifestResponse& b) {
  if (a.group().SerializeAsString() != b.group().SerializeAsString()) return false;
  return std::equal(a.partitions().begin(), a.partitions().end(), b.partitions().begin(),
                    b.partitions().end(), [](const auto& one, const auto& other) {
                      return one.SerializeAsString() == other.SerializeAsString();
                    });
}

/// A bucket gets the options of the job's snapshots. If the snapshots are in a folder, it gets the
/// options of the job file.
absl::StatusOr<std::string> OutputPlace(const std::string& output, const JobSpec& job,
                                        const v1::GetManifestResponse& manifest) {
  if (!IsS3Place(output)) return output;
  if (!IsS3Place(manifest.snapshot_directory())) return PlaceWithOptions(output, job.s3);
  MUSTER_ASSIGN_OR_RETURN(const S3Place snapshots, ParseS3Place(manifest.snapshot_directory()));
  return PlaceWithOptions(output, snapshots.options);
}

absl::Status WriteGroupExportOf(const v1::GetManifestResponse& manifest, const JobSpec& job,
                                const StateDirectory& state, std::string output) {
  ps::GroupExportOptions options;
  options.job = job.name;
  options.seed = job.seed;
  options.snapshot_directory = manifest.snapshot_directory();
  options.output_directory = std::move(output);
  const v1::GroupManifest& group = manifest.group();
  if (group.stripes().empty()) {
    return absl::FailedPreconditionError(
        fmt::format("there is nothing to export: according to the journal, the group of the job in "
                    "{} has stored no state yet (spec.snapshots.interval)",
                    state.path()));
  }
  MUSTER_ASSIGN_OR_RETURN(options.label, FromProto<StateLabel>(group.label()));
  for (const v1::GroupTensor& tensor : group.tensors()) {
    MUSTER_ASSIGN_OR_RETURN(GroupTensor one, FromProto<GroupTensor>(tensor));
    options.tensors.push_back(std::move(one));
  }
  for (const v1::StateStripe& stripe : group.stripes()) {
    MUSTER_ASSIGN_OR_RETURN(StateStripe one, FromProto<StateStripe>(stripe));
    options.stripes.push_back(std::move(one));
  }
  return ps::WriteGroupExport(options).status();
}

}  // namespace

uint64_t ExportedTables(const v1::GetManifestResponse& manifest) {
  return static_cast<uint64_t>(manifest.group().tensors_size() + manifest.tables_size());
}

absl::StatusOr<v1::GetManifestRequest> ManifestRequestFor(std::string_view epoch) {
  v1::GetManifestRequest request;
  if (epoch.empty()) return request;
  if (epoch == "best") {
    request.set_best(true);
    return request;
  }
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(epoch.data(), epoch.data() + epoch.size(), number);
  if (error != std::errc() || end != epoch.data() + epoch.size() || number == 0) {
    return absl::InvalidArgumentError(
        fmt::format("--epoch: expected best or a number from 1, got '{}'", epoch));
  }
  request.set_epoch(number - 1);
  return request;
}

absl::Status WriteExportOf(const v1::GetManifestResponse& manifest, const StateDirectory& state,
                           const std::string& output_directory) {
  // Relative paths in the copy may be wrong here, but name, seed and partitions are not paths.
  MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(state.job_copy(), ""));
  ps::ExportOptions options;
  options.job = job.spec.name;
  options.seed = job.spec.seed;
  options.snapshot_directory = manifest.snapshot_directory();
  MUSTER_ASSIGN_OR_RETURN(options.output_directory,
                          OutputPlace(output_directory, job.spec, manifest));
  if (manifest.has_group()) {
    MUSTER_RETURN_IF_ERROR(WriteGroupExportOf(manifest, job.spec, state, options.output_directory));
    if (manifest.tables().empty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(options.output_directory,
                            OutputPlace(output_directory + "/tables", job.spec, manifest));
  }
  for (const v1::Table& table : manifest.tables()) {
    MUSTER_ASSIGN_OR_RETURN(TableSpec spec, FromProto<TableSpec>(table));
    options.tables.push_back(std::move(spec));
  }
  options.manifests.resize(job.spec.partitions);
  for (const v1::PartitionManifest& partition : manifest.partitions()) {
    if (partition.partition() >= options.manifests.size()) {
      return absl::DataLossError(
          fmt::format("the manifest has partition {}, but the job in {} has only {} partitions",
                      partition.partition(), state.path(), options.manifests.size()));
    }
    MUSTER_ASSIGN_OR_RETURN(options.manifests[partition.partition()],
                            FromProto<Manifest>(partition.manifest()));
  }
  if (manifest.tables().empty()) {
    return absl::FailedPreconditionError(
        fmt::format("there is nothing to export: according to the journal, no trainer of the job "
                    "in {} has registered a table yet",
                    state.path()));
  }
  MUSTER_ASSIGN_OR_RETURN(const ps::ExportSummary summary, ps::WriteExport(options));
  for (const std::string& warning : summary.warnings) PrintNote("warning: " + warning);
  return absl::OkStatus();
}

absl::StatusOr<v1::GetManifestResponse> ExportWhileItRuns(const ExportSteps& steps) {
  MUSTER_ASSIGN_OR_RETURN(v1::GetManifestResponse manifest, steps.fetch());
  for (int tries = 1;; ++tries) {
    const absl::Status status = steps.write(manifest);
    if (status.ok()) return manifest;
    if (!MayBeReplaced(status)) return status;
    MUSTER_ASSIGN_OR_RETURN(v1::GetManifestResponse newer, steps.fetch());
    if (SamePartitions(manifest, newer)) return status;
    if (tries == kExportTriesMax) {
      return Annotate(status, fmt::format("{} times the job replaced its snapshots while they were "
                                          "read; try again after `muster drain`, or with a longer "
                                          "spec.snapshots.interval",
                                          tries));
    }
    PrintNote("the job replaced a snapshot while it was read; trying again with the newest ones");
    manifest = std::move(newer);
  }
}

std::string KeptBestNote(const JobStatus& status) {
  const auto best = std::ranges::find(status.kept_epochs, true, &KeptEpoch::best);
  if (best == status.kept_epochs.end()) return "";
  uint32_t newest = 0;
  for (const DatasetStatus& dataset : status.datasets) {
    const EpochStatus* const last = LastCommittedEpoch(dataset);
    if (last != nullptr) newest = std::max(newest, last->epoch);
  }
  if (newest <= best->epoch && IsTerminal(status.state)) return "";
  return fmt::format(
      "these are the newest weights. Those of epoch {}, the best one, are kept: export them with "
      "--epoch best",
      best->epoch + 1);
}

void PrintExported(OutputFormat format, const std::string& output_directory, uint64_t tables) {
  if (format == OutputFormat::kJson) {
    PrintData(JsonText({{"output_directory", output_directory}, {"tables", tables}}, 2) + "\n");
    return;
  }
  PrintData(fmt::format("{} written to {}\n", CountText(tables, "table"), output_directory));
}

}  // namespace muster
