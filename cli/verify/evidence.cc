#include "cli/verify/evidence.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "cli/ask/export_command.h"
#include "cli/state/stored_job.h"
#include "cli/verify/histories.h"
#include "proto/exported/exported_table.h"
#include "verify/workload/contributions.h"

namespace muster::verify {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{1} << 32;
/// The most shards that a worker has begun and the master does not yet count as done.
constexpr uint64_t kShardsHeld = 3;

absl::Status Export(const VerifyJob& job) {
  const StateDirectory state = job.state();
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<AdminClient> stored,
                          OpenStoredJob({.job_file = "", .state_directory = state.path()}));
  MUSTER_ASSIGN_OR_RETURN(const v1::GetManifestResponse manifest, stored->GetManifest({}));
  return WriteExportOf(manifest, state, job.export_folder());
}

absl::StatusOr<ExportedTable> OpenTable(const VerifyJob& job, const std::string& name, uint32_t dim,
                                        std::vector<uint64_t> shape) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.shape = std::move(shape);
  spec.warm_start_directory = job.export_folder();
  return ExportedTable::Open(spec);
}

}  // namespace

absl::StatusOr<LedgerSummary> ReadLedger(const VerifyJob& job) {
  const std::string path = job.state().summary();
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  absl::StatusOr<LedgerSummary> summary = ParseSummary(text);
  if (!summary.ok()) return Annotate(summary.status(), path);
  return summary;
}

absl::StatusOr<LedgerSummary> ParseSummary(const std::string& text) {
  LedgerSummary summary;
  // Reading a member throws if it is missing or has another type.
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const nlohmann::json& epoch : json.at("datasets").at(0).at("epochs")) {
      const nlohmann::json& metrics = epoch.at("metrics");
      const bool known = metrics.contains("id") && metrics["id"].is_number();
      summary.ledger.epochs.push_back({.expected = epoch.at("records_expected").get<uint64_t>(),
                                       .committed = epoch.at("records_committed").get<uint64_t>(),
                                       .mean_id = known
                                                      ? metrics["id"].get<double>()
                                                      : std::numeric_limits<double>::quiet_NaN()});
    }
    const nlohmann::json& counters = json.at("counters");
    summary.ledger.redelivered_minibatches = counters.at("redelivered_minibatches").get<uint64_t>();
    summary.paths = {
        .replayed_shards = counters.at("replayed_shards").get<uint64_t>(),
        .reverified_runs = counters.at("reverified_runs").get<uint64_t>(),
        .parts_skipped = counters.at("parts_skipped").get<uint64_t>(),
        .reasserted_leases = counters.at("reasserted_leases").get<uint64_t>(),
    };
    const nlohmann::json& restarts = json.at("restarts");
    summary.master_restarts = restarts.at("master").get<uint32_t>();
    summary.other_restarts =
        restarts.at("ps").get<uint32_t>() + restarts.at("worker").get<uint32_t>();
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(fmt::format("not a summary of the job: {}", error.what()));
  }
  return summary;
}

uint64_t RedeliveredTolerance(const LedgerSummary& summary, uint32_t pauses, uint32_t workers) {
  // A master that dies loses its counts of the last second. In the worst case, everything that
  // workers hold had to run again in that second. It counts once more for leases that ended because
  // the machine was slow.
  const uint64_t held = workers * kShardsHeld * VerifyJob::kMinibatchesPerShard;
  // The master knows a worker's progress in its shard only from the last heartbeat.
  const uint64_t computed = VerifyJob::kMinibatchesPerShard;
  return (summary.master_restarts + 1) * held + (summary.other_restarts + pauses) * computed;
}

uint64_t RedeliveredUnseenMax(uint32_t pauses) {
  // If a process dies together with the master, or stands still since its last heartbeat, its
  // counts are lost. Replayed shards are counted durably when they are replayed.
  return (1 + uint64_t{pauses}) * kShardsHeld * VerifyJob::kMinibatchesPerShard;
}

absl::StatusOr<Judgement> Judge(const VerifyJob& job, const StormResult& storm, uint32_t workers) {
  MUSTER_ASSIGN_OR_RETURN(const Histories histories,
                          ReadHistories(job.histories(), job.workload()));
  MUSTER_ASSIGN_OR_RETURN(LedgerSummary summary, ReadLedger(job));
  summary.ledger.redelivered_tolerance = RedeliveredTolerance(summary, Sum(storm.pauses), workers);
  summary.ledger.redelivered_unseen_max = RedeliveredUnseenMax(Sum(storm.pauses));
  MUSTER_RETURN_IF_ERROR(Export(job));
  MUSTER_ASSIGN_OR_RETURN(const ExportedTable ids, OpenTable(job, "ids", kIdsDim, {}));
  MUSTER_ASSIGN_OR_RETURN(const ExportedTable buckets, OpenTable(job, "buckets", kBucketsDim, {}));
  MUSTER_ASSIGN_OR_RETURN(const ExportedTable wide, OpenTable(job, "wide", kWideDim, {}));
  MUSTER_ASSIGN_OR_RETURN(const ExportedTable totals,
                          OpenTable(job, "totals", 0, {kTotalsRows, kTotalsColumns}));
  const Weights weights{.ids = {ids.keys(), ids.values()},
                        .buckets = {buckets.keys(), buckets.values()},
                        .wide = {wide.keys(), wide.values()},
                        .totals = totals.values()};
  return Judgement{.verdict = Check(job.workload(), histories.attempts, summary.ledger, weights),
                   .worker = Summarise(histories.recoveries.Times(storm.worker_kills)),
                   .server = Summarise(storm.server_recoveries_ms),
                   .master = Summarise(storm.master_recoveries_ms),
                   .scaler = Summarise(storm.scaler_recoveries_ms),
                   .ledger_redelivered_minibatches = summary.ledger.redelivered_minibatches,
                   .redelivered_tolerance = summary.ledger.redelivered_tolerance,
                   .paths = Larger(storm.paths, summary.paths)};
}

bool Judgement::ok() const {
  return verdict.ok() && (!group.has_value() || group->verdict.ok());
}

}  // namespace muster::verify
