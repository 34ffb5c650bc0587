#include "master/service/admin_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/status.h"
#include "base/text.h"
#include "master/service/topic_answers.h"
#include "proto/fields/generated.h"

namespace muster {
namespace {

constexpr uint32_t kPageDefault = 1'000;
constexpr uint32_t kPageMax = 10'000;
constexpr uint32_t kEpochsMax = 1'000;
/// A page ends early rather than outgrow what gRPC's clients take unless told otherwise (4 MiB).
constexpr size_t kPageBytesMax = 3 << 20;

uint64_t Millis(std::chrono::nanoseconds duration) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

absl::StatusOr<uint32_t> PageSize(uint32_t limit) {
  if (limit > kPageMax) {
    return absl::InvalidArgumentError(
        fmt::format("limit: {} is more than {}; ask page by page", limit, kPageMax));
  }
  return limit == 0 ? kPageDefault : limit;
}

/// Values, not what they were computed from: a histogram has thousands of bins.
void FillMetrics(const ShardMetrics& metrics, v1::EpochStatus* to) {
  const auto add = [to](const std::string& name, double value) {
    v1::MetricValue* metric = to->add_metrics();
    metric->set_name(ValidUtf8(name));
    metric->set_value(value);
  };
  for (const auto& [name, mean] : metrics.means) add(name, mean.sum / mean.weight);
  for (const auto& [name, histogram] : metrics.aucs) add(name, Auc(histogram));
  to->set_rejected_records(metrics.rejected_records);
  for (const std::string& sample : metrics.reject_samples) {
    to->add_reject_samples(ValidUtf8(sample));
  }
}

void FillEpoch(const Ledger& ledger, DatasetId id, EpochIndex epoch, v1::EpochStatus* to) {
  const EpochCounts counts = ledger.queue().Counts(id, epoch);
  to->set_epoch(epoch.value());
  to->set_records_expected(ledger.streams().Grows(id) ? RecordsSoFar(ledger, id)
                                                      : ledger.plan()[id.value()].records);
  to->set_records_committed(ledger.RecordsCommitted(id, epoch));
  to->set_records_done(ledger.RecordsDone(id, epoch));
  to->set_shards(counts.shards);
  to->set_shards_committed(counts.committed);
  to->set_shards_done(counts.committed + counts.done);
  to->set_shards_leased(counts.leased);
  to->set_shards_failed(counts.failed);
  if (const ShardMetrics* metrics = ledger.Metrics(id, epoch)) FillMetrics(*metrics, to);
}

/// How many epochs have begun. They begin in order.
uint32_t EpochsBegun(const Ledger& ledger, DatasetId id) {
  const auto begun = [&](uint32_t e) {
    const EpochCounts counts = ledger.queue().Counts(id, EpochIndex(e));
    return counts.committed + counts.done + counts.leased + counts.failed > 0;
  };
  uint32_t low = 0, high = ledger.queue().epochs(id);
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (begun(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void FillDataset(const MasterCore& core, DatasetId id, StepTime at, v1::DatasetStatus* to) {
  const Ledger& ledger = core.ledger();
  const DatasetPlan& plan = ledger.plan()[id.value()];
  const uint32_t total = ledger.queue().epochs(id);
  to->set_name(plan.name);
  to->set_mode(static_cast<uint32_t>(plan.mode));
  to->set_epochs_total(total);
  uint32_t end = total;
  if (total > kEpochsMax) end = std::clamp(EpochsBegun(ledger, id) + 1, kEpochsMax, total);
  const uint32_t first = end - std::min(end, kEpochsMax);
  for (uint32_t e = first; e < end; ++e) FillEpoch(ledger, id, EpochIndex(e), to->add_epochs());
  to->set_omitted_records_expected(plan.records * (total - (end - first)));
  uint64_t done = 0;
  for (uint32_t e = 0; e < first; ++e) done += ledger.RecordsDone(id, EpochIndex(e));
  to->set_omitted_records_done(done);
  if (ledger.streams().Grows(id)) FillStream(core, id, at, to->mutable_stream());
}

void FillNode(const MasterCore& core, const Node& node, TimePoint now, v1::NodeStatus* to) {
  const NodeRecord& record = node.record;
  to->set_name(record.name);
  to->set_role(record.role);
  to->set_state(std::string(ToString(record.state)));
  to->set_pid(record.pid);
  to->set_incarnation(record.incarnation);
  if (node.last_heard.has_value()) to->set_heartbeat_age_ms(Millis(now - *node.last_heard));
  to->set_restarts(RestartsOf(record));
  to->set_start(record.told_start.value());
  to->set_last_exit(record.last_exit);
  if (record.role == kRoleWorker) {
    to->set_records_committed(record.records_committed);
    to->set_shards_held(
        static_cast<uint32_t>(core.leases().CountOf({record.name, record.incarnation})));
    ToProto(node.times, to->mutable_times());
  } else if (record.role == kRoleServer) {
    if (const std::optional<ServerId> id = NodeTable::ServerIdOf(record.name)) {
      const PartitionTable::Load load = core.partitions().LoadOf(*id);
      to->set_partitions(load.owned);
      to->set_partitions_serving(load.serving);
    }
    ToProto(node.counters, to->mutable_counters());
    to->set_peer_pulls(node.peers.pulls);
    to->set_peer_pull_us(node.peers.pull_us);
    to->set_peer_pushes(node.peers.pushes);
    to->set_peer_push_us(node.peers.push_us);
    to->set_lanes(static_cast<uint32_t>(record.lanes.size()));
  }
  to->set_drain(std::string(ToString(node.drain.state)));
  to->set_drain_left(node.drain.left);
}

std::string_view PartitionState(const MasterCore& core, const PartitionEntry& entry, bool serving) {
  const auto node = core.nodes().nodes().find(NodeTable::ServerName(entry.owner));
  const bool alive = entry.owner_incarnation != ServerIncarnation() &&
                     node != core.nodes().nodes().end() &&
                     node->second.record.state != NodeState::kExited;
  if (!alive) return "unowned";
  return serving ? "serving" : "restoring";
}

void FillPartition(const MasterCore& core, PartitionId id, TimePoint now, v1::PartitionStatus* to) {
  const PartitionEntry& entry = core.partitions().entry(id);
  const PartitionTable::Seen seen = core.partitions().SeenOf(id);
  const Manifest& manifest = core.partitions().manifest(id);
  to->set_partition(id.value());
  to->set_owner(NodeTable::ServerName(entry.owner));
  to->set_owner_incarnation(entry.owner_incarnation.value());
  to->set_owner_epoch(entry.epoch.value());
  to->set_state(std::string(PartitionState(core, entry, seen.serving)));
  to->set_snapshot(manifest.number.value());
  to->set_snapshot_cut(manifest.cut.value());
  if (seen.accepted_at.has_value()) to->set_snapshot_age_ms(Millis(now - *seen.accepted_at));
  to->set_snapshot_files(static_cast<uint32_t>(manifest.files.size()));
  uint64_t bytes = 0;
  for (const SnapshotFile& file : manifest.files) bytes += file.bytes;
  to->set_snapshot_bytes(bytes);
  if (seen.traffic.has_value()) ToProto(*seen.traffic, to->mutable_traffic());
}

void FillCounters(const MasterCore& core, v1::JobCounters* to) {
  const JobTotals& totals = core.totals();
  to->set_redelivered_minibatches(totals.redelivered_minibatches);
  to->set_replayed_shards(totals.replayed_shards);
  to->set_reverified_runs(totals.reverified_runs);
  to->set_reasserted_leases(totals.reasserted_leases);
  to->set_expired_leases(totals.expired_leases);
  to->set_parts_skipped(core.nodes().PartsSkipped());
  to->set_parts_stale(core.nodes().PartsStale());
  to->set_refused_dones(totals.refused_dones);
  to->set_rejected_records(core.ledger().rejected_records());
  to->set_snapshots_accepted(totals.snapshots_accepted);
  to->set_master_restarts(totals.master_restarts);
}

void FillEvent(const EventRecord& from, v1::Event* to) {
  to->set_sequence(from.sequence);
  to->set_wall_us(static_cast<uint64_t>(from.wall.count()));
  to->set_kind(from.kind);
  to->set_node(from.node);
  to->set_text(from.text);
}

std::string_view PhaseName(LeasePhase phase) {
  switch (phase) {
    case LeasePhase::kQueued:
      return "queued";
    case LeasePhase::kComputing:
      return "computing";
    case LeasePhase::kPushing:
      return "pushing";
  }
  return "";
}

constexpr size_t kShardRunsMax = 10'000;

/// Counts every shard that matches, and fills in those of the page.
class ShardPage {
 public:
  ShardPage(const MasterCore& core, const std::function<ShardWork(const ShardId&)>& work_of,
            uint64_t offset, uint32_t limit, v1::ListShardsResponse* to)
      : core_(core), work_of_(work_of), offset_(offset), limit_(limit), to_(to) {}

  /// nullptr when the shard is not on the page.
  v1::ShardStatus* Add(const ShardId& shard, const char* state) {
    const uint64_t at = total_++;
    to_->set_total(total_);
    if (at < offset_ || at - offset_ >= limit_ || bytes_ >= kPageBytesMax) return nullptr;
    v1::ShardStatus* status = to_->add_shards();
    ToProto(shard, status->mutable_id());
    status->set_dataset(core_.ledger().plan()[shard.dataset.value()].name);
    status->set_state(state);
    if (core_.ledger().streams().Grows(shard.dataset)) {
      FillRange(core_.ledger(), shard, status);
    } else {
      const ShardWork work = work_of_(shard);
      status->set_source(ValidUtf8(work.path));
      status->set_first_record(work.first_record);
      status->set_records(work.record_count);
      status->set_first_line(work.first_record + (work.has_header ? 2 : 1));
    }
    if (const FailureRecord* failure = core_.ledger().FindFailure(shard)) {
      status->set_failures(failure->failures);
      status->set_node_failures(failure->node_failures);
      for (const std::string& reason : failure->reasons) status->add_reasons(ValidUtf8(reason));
    }
    bytes_ += status->ByteSizeLong();
    return status;
  }

 private:
  const MasterCore& core_;
  const std::function<ShardWork(const ShardId&)>& work_of_;
  const uint64_t offset_;
  const uint32_t limit_;
  v1::ListShardsResponse* const to_;
  uint64_t total_ = 0;
  size_t bytes_ = 0;
};

void FillRestoreTrouble(const MasterCore& core, v1::JobStatus* to) {
  for (const auto& [name, node] : core.nodes().nodes()) {
    if (!node.restore.active()) continue;
    if (to->reason().empty()) {
      to->set_reason(ValidUtf8(fmt::format("{}: {}", name, node.restore.Text())));
    }
    to->set_unrestorable(core.state() == JobState::kFailed &&
                         node.restore.lasts() >= core.options().restore_timeout);
    if (to->unrestorable()) return;
  }
}

}  // namespace

void FillStatus(const MasterCore& core, const std::string& job, StepTime at, v1::JobStatus* to) {
  const TimePoint now = at.now;
  to->set_job(job);
  to->set_state(static_cast<v1::JobState>(core.state()));
  to->set_reason(core.reason());
  FillRestoreTrouble(core, to);
  for (uint32_t i = 0; i < core.ledger().plan().size(); ++i) {
    FillDataset(core, DatasetId(i), at, to->add_datasets());
  }
  for (const auto& [name, node] : core.nodes().nodes()) FillNode(core, node, now, to->add_nodes());
  FillCounters(core, to->mutable_counters());
  to->set_events_newest(core.events().newest());
  to->set_uptime_ms(Millis(now - core.started_at()));
  to->set_master_incarnation(core.incarnation().value());
  to->set_done_seq(core.ledger().done_seq().value());
  to->set_commit_seq(core.ledger().commit_seq().value());
  to->set_grace_period(core.in_grace_period());
  if (!core.events().events().empty()) {
    const EventRecord& last = core.events().events().rbegin()->second;
    to->set_last_event(fmt::format("{}{}{}{}{}", last.kind, last.node.empty() ? "" : " ", last.node,
                                   last.text.empty() ? "" : ": ", last.text));
  }
}

absl::Status FillShards(const MasterCore& core, TimePoint now,
                        const std::function<ShardWork(const ShardId&)>& work_of,
                        const v1::ListShardsRequest& request, v1::ListShardsResponse* to) {
  const std::string& state = request.state();
  if (!state.empty() && state != "leased" && state != "done" && state != "failed") {
    return absl::InvalidArgumentError(
        fmt::format("state: '{}' is none of leased, done, failed", state));
  }
  MUSTER_ASSIGN_OR_RETURN(const uint32_t limit, PageSize(request.limit()));
  ShardPage page(core, work_of, request.offset(), limit, to);
  if (state.empty() || state == "failed") {
    for (const ShardId& shard : core.ledger().queue().FailedShards()) page.Add(shard, "failed");
  }
  if (state.empty() || state == "leased") {
    for (const auto& [token, lease] : core.leases().leases()) {
      v1::ShardStatus* status = page.Add(lease.shard, "leased");
      if (status == nullptr) continue;
      status->set_worker(lease.worker.name);
      status->set_token(token.value());
      status->set_phase(std::string(PhaseName(lease.phase)));
      status->set_minibatches_started(lease.minibatches_started);
      status->set_age_ms(Millis(now - lease.granted_at));
    }
  }
  if (state.empty() || state == "done") {
    for (const auto& [seq, done] : core.ledger().queue().done()) {
      if (v1::ShardStatus* status = page.Add(done.shard, "done")) {
        status->set_token(done.token.value());
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FillShardMap(const MasterCore& core, const v1::GetShardMapRequest& request,
                          v1::GetShardMapResponse* to) {
  const ShardQueue& queue = core.ledger().queue();
  const DatasetId dataset(request.dataset());
  const EpochIndex epoch(request.epoch());
  if (!queue.ValidEpoch(dataset, epoch)) {
    return absl::NotFoundError(
        fmt::format("dataset {} has no epoch {}, or there is no such dataset", request.dataset(),
                    request.epoch()));
  }
  const uint64_t shards = queue.Counts(dataset, epoch).shards;
  if (request.begin() >= std::max<uint64_t>(shards, 1)) {
    return absl::InvalidArgumentError(
        fmt::format("begin: {} is beyond the epoch's {} shards", request.begin(), shards));
  }
  to->set_shards(shards);
  for (const ShardSpan& run : queue.Runs(dataset, epoch, request.begin(), kShardRunsMax)) {
    v1::ShardRunStatus* status = to->add_runs();
    status->set_end(run.end);
    status->set_state(std::string(ToString(run.state)));
  }
  return absl::OkStatus();
}

absl::Status FillEvents(const MasterCore& core, const v1::ListEventsRequest& request,
                        v1::ListEventsResponse* to) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t limit, PageSize(request.limit()));
  size_t bytes = 0;
  for (const EventRecord& event : core.events().After(request.after(), limit)) {
    if (bytes >= kPageBytesMax) break;
    FillEvent(event, to->add_events());
    bytes += to->events().rbegin()->ByteSizeLong();
  }
  return absl::OkStatus();
}

absl::Status FillPartitions(const MasterCore& core, TimePoint now,
                            const v1::ListPartitionsRequest& request,
                            v1::ListPartitionsResponse* to) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t limit, PageSize(request.limit()));
  const uint64_t total = core.partitions().size();
  to->set_total(total);
  size_t bytes = 0;
  for (uint64_t p = request.offset();
       p < total && p - request.offset() < limit && bytes < kPageBytesMax; ++p) {
    FillPartition(core, PartitionId(static_cast<uint32_t>(p)), now, to->add_partitions());
    bytes += to->partitions().rbegin()->ByteSizeLong();
  }
  return absl::OkStatus();
}

void FillManifest(const MasterCore& core, const std::string& snapshot_directory,
                  v1::GetManifestResponse* to) {
  for (uint32_t i = 0; i < core.partitions().size(); ++i) {
    v1::PartitionManifest* partition = to->add_partitions();
    partition->set_partition(i);
    ToProto(core.partitions().manifest(PartitionId(i)), partition->mutable_manifest());
  }
  for (const auto& [id, table] : core.tables()) ToProto(table, to->add_tables());
  to->set_snapshot_directory(snapshot_directory);
  to->set_commit_seq(core.ledger().commit_seq().value());
  to->set_state(static_cast<v1::JobState>(core.state()));
}

}  // namespace muster
