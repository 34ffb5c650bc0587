#include "cli/ask/query_commands.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "admin/admin_client.h"
#include "admin/shard_id.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/ask/export_command.h"
#include "cli/show/json_output.h"
#include "cli/show/output.h"
#include "cli/show/text_output.h"
#include "cli/state/job_source.h"
#include "cli/state/scaler_link.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

void PrintJson(const nlohmann::json& json) {
  PrintData(JsonText(json, 2) + "\n");
}

/// Short, because a scaler that does not answer must not delay the master's answer.
constexpr std::chrono::milliseconds kScalerDeadline{1'000};

absl::StatusOr<JobStatus> AskStatus(const QueryOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const JobSource source, FindJobSource(options));
  return source.client->GetStatus();
}

/// Adds the rate and the remaining time if the scaler answers. Only the scaler measures them.
void AddRate(const QueryOptions& options, JobStatus* status) {
  if (!options.master.empty() || IsTerminal(status->state)) return;
  const absl::StatusOr<StateDirectory> state = FindStateDirectory(options.target);
  if (!state.ok()) return;
  const absl::StatusOr<scaler::rest::RestClient> scaler = FindScaler(*state, kScalerDeadline);
  if (!scaler.ok()) return;
  const absl::StatusOr<scaler::rest::Job> job = scaler->GetJob();
  if (!job.ok()) return;
  status->progress.records_per_second = job->progress.records_per_second;
  status->progress.remaining_seconds = job->progress.remaining_seconds;
}

absl::StatusOr<v1::GetManifestResponse> FindManifest(const ExportCommandOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const v1::GetManifestRequest request, ManifestRequestFor(options.epoch));
  MUSTER_ASSIGN_OR_RETURN(const JobSource source, FindJobSource(options.query));
  return source.client->GetManifest(request);
}

}  // namespace

int StatusCommand(const StatusOptions& options) {
  absl::StatusOr<JobStatus> status = AskStatus(options.query);
  if (!status.ok()) return PrintError(status.status());
  AddRate(options.query, &*status);
  if (options.query.output == OutputFormat::kJson) {
    PrintJson(ToJson(*status));
  } else {
    const EpochsShown shown = options.all_epochs ? EpochsShown::kAll : EpochsShown::kNewest;
    const size_t columns = ColumnsOf(STDOUT_FILENO).value_or(0);
    PrintData(StatusText(*status, shown, columns) + NodesText(*status));
  }
  return kExitSucceeded;
}

int NodesCommand(const QueryOptions& options) {
  absl::StatusOr<JobStatus> status = AskStatus(options);
  if (!status.ok()) return PrintError(status.status());
  if (options.output == OutputFormat::kJson) {
    PrintJson(NodesToJson(*status));
  } else {
    PrintData(NodesText(*status));
  }
  return kExitSucceeded;
}

int ShardsCommand(const ShardsOptions& options) {
  absl::StatusOr<JobSource> source = FindJobSource(options.query);
  if (!source.ok()) return PrintError(source.status());
  v1::ListShardsRequest request;
  request.set_state(options.state);
  request.set_limit(options.limit);
  request.set_offset(options.offset);
  absl::StatusOr<ShardPage> page = source->client->ListShards(request);
  if (!page.ok()) return PrintError(page.status());
  if (options.query.output == OutputFormat::kJson) {
    PrintJson(ToJson(*page));
  } else {
    PrintData(ShardsText(*page));
  }
  return kExitSucceeded;
}

int PartitionsCommand(const PartitionsOptions& options) {
  absl::StatusOr<JobSource> source = FindJobSource(options.query);
  if (!source.ok()) return PrintError(source.status());
  v1::ListPartitionsRequest request;
  request.set_limit(options.limit);
  request.set_offset(options.offset);
  absl::StatusOr<PartitionList> list = source->client->ListPartitions(request);
  if (!list.ok()) return PrintError(list.status());
  if (options.query.output == OutputFormat::kJson) {
    PrintJson(ToJson(*list));
  } else {
    PrintData(PartitionsText(*list));
  }
  return kExitSucceeded;
}

int ExportCommand(const ExportCommandOptions& options) {
  absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  const absl::StatusOr<v1::GetManifestResponse> manifest =
      ExportWhileItRuns({.fetch = [&] { return FindManifest(options); },
                         .write =
                             [&](const v1::GetManifestResponse& newest) {
                               return WriteExportOf(newest, *state, options.output_directory);
                             }});
  if (!manifest.ok()) return PrintError(manifest.status());
  PrintExported(options.query.output, options.output_directory, ExportedTables(*manifest));
  if (!options.epoch.empty()) return kExitSucceeded;
  const absl::StatusOr<JobStatus> status = AskStatus(options.query);
  const std::string note = status.ok() ? KeptBestNote(*status) : "";
  if (!note.empty()) PrintNote(note);
  return kExitSucceeded;
}

}  // namespace muster
