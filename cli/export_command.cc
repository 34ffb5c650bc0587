#include "cli/export_command.h"

#include "base/status.h"
#include "cli/job_loader.h"
#include "ps/export/export.h"
#include "sharding/codec/control_codec.h"

namespace muster {

absl::Status WriteExportOf(const v1::GetManifestResponse& manifest, const StateDirectory& state,
                           const std::string& output_directory) {
  // The copy's relative paths may be off; name, seed and partitions are not paths.
  MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(state.job_copy(), ""));
  ps::ExportOptions options;
  options.job = job.spec.name;
  options.seed = job.spec.seed;
  options.snapshot_directory = manifest.snapshot_directory();
  options.output_directory = output_directory;
  for (const v1::Table& table : manifest.tables()) {
    MUSTER_ASSIGN_OR_RETURN(TableSpec spec, FromProto(table));
    options.tables.push_back(std::move(spec));
  }
  options.manifests.resize(job.spec.partitions);
  for (const v1::PartitionManifest& partition : manifest.partitions()) {
    if (partition.partition() >= options.manifests.size()) {
      return absl::DataLossError(
          fmt::format("the manifest names partition {}, but the job in {} has {}",
                      partition.partition(), state.path(), options.manifests.size()));
    }
    MUSTER_ASSIGN_OR_RETURN(options.manifests[partition.partition()],
                            FromProto(partition.manifest()));
  }
  return ps::WriteExport(options).status();
}

}  // namespace muster
