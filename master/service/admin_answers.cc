#include "master/service/admin_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/status.h"
#include "base/text.h"
#include "master/service/answers/epoch_answers.h"
#include "master/service/answers/group_answers.h"
#include "master/service/answers/topic_answers.h"
#include "proto/fields/encode.h"
#include "proto/fields/generated.h"

namespace muster {
namespace {

constexpr uint32_t kPageDefault = 1'000;
constexpr uint32_t kPageMax = 10'000;
constexpr size_t kPageBytesMax = 3 << 20;

uint64_t Millis(std::chrono::nanoseconds duration) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

/// The file of a shard; of several pieces, the file of the first, and how many there are. Record
/// numbers have none.
std::string SourceTextOf(const ShardWork& work) {
  if (work.has_numbers()) return "";
  const std::string& path = work.files[work.runs.front().file].path;
  if (work.runs.size() == 1) return path;
  return fmt::format(
      "{} and {} more pieces{}", path, work.runs.size() - 1,
      work.files.size() == 1 ? "" : fmt::format(" of {}", CountText(work.files.size(), "file")));
}

absl::StatusOr<uint32_t> PageSize(uint32_t limit) {
  if (limit > kPageMax) {
    return absl::InvalidArgumentError(
        fmt::format("limit: {} is more than {}; ask for several pages", limit, kPageMax));
  }
  return limit == 0 ? kPageDefault : limit;
}

/// Adds values instead of the data behind them, because a histogram has thousands of bins.
void AddMetrics(const ShardMetrics& metrics, EpochStatus* to) {
  for (const auto& [name, value] : ValuesOf(metrics)) to->metrics[ValidUtf8(name)] = value;
  to->rejected_records = metrics.rejected_records;
  to->minibatches_again = metrics.minibatches_again;
  to->records_later = metrics.records_later;
  for (const std::string& sample : metrics.reject_samples) {
    to->reject_samples.push_back(ValidUtf8(sample));
  }
}

DatasetStatus DatasetOf(const MasterCore& core, DatasetId id, StepTime at) {
  const Ledger& ledger = core.ledger();
  const DatasetPlan& plan = ledger.plan()[id.value()];
  DatasetStatus status{.index = id.value(),
                       .name = plan.name,
                       .mode = ToString(plan.mode),
                       .epochs_total = ledger.queue().epochs(id)};
  status.overlaps =
      plan.mode == DatasetMode::kEvaluate && core.options().evaluation == Evaluation::kOverlapping;
  AddEpochs(ledger, id, &status);
  if (ledger.streams().Grows(id)) status.stream = StreamOf(core, id, at);
  return status;
}

std::vector<StatusFacts::OfEpoch> MetricsOf(const Ledger& ledger,
                                            const std::vector<DatasetStatus>& datasets) {
  std::vector<StatusFacts::OfEpoch> found;
  for (size_t d = 0; d < datasets.size(); ++d) {
    for (size_t e = 0; e < datasets[d].epochs.size(); ++e) {
      std::shared_ptr<const ShardMetrics> metrics =
          ledger.Metrics(DatasetId(datasets[d].index), EpochIndex(datasets[d].epochs[e].epoch));
      if (metrics != nullptr) found.push_back({d, e, std::move(metrics)});
    }
  }
  return found;
}

/// Of training and predictions, all epochs together.
Progress ProgressOf(const std::vector<DatasetStatus>& datasets) {
  Progress progress;
  for (const DatasetStatus& dataset : datasets) {
    if (dataset.mode == ToString(DatasetMode::kEvaluate)) continue;
    progress.records_expected += dataset.omitted_records_expected;
    progress.records_done += dataset.omitted_records_done;
    progress.records_committed += dataset.omitted_records_committed;
    for (const EpochStatus& epoch : dataset.epochs) {
      progress.records_expected += epoch.records_expected;
      progress.records_done += epoch.records_done;
      progress.records_committed += epoch.records_committed;
    }
  }
  return progress;
}

WorkerStatus WorkerOf(const MasterCore& core, const Node& node) {
  const NodeRecord& record = node.record;
  return {.records_committed = record.records_committed,
          .shards_held = core.leases().CountOf({record.name, record.incarnation}),
          .times = node.times};
}

ServerStatus ServerOf(const MasterCore& core, const Node& node) {
  ServerStatus status{.lanes = static_cast<uint32_t>(node.record.lanes.size()),
                      .counters = node.counters,
                      .seen_by_workers = node.peers};
  if (const std::optional<ServerId> id = NodeTable::ServerIdOf(node.record.name)) {
    const PartitionTable::Load load = core.partitions().LoadOf(*id);
    status.partitions = load.owned;
    status.partitions_serving = load.serving;
    status.seen_by_workers.server = *id;
    status.seen_by_workers.incarnation = ServerIncarnation(node.record.incarnation);
  }
  return status;
}

/// "worker-0: 10.0.0.9:7100: connection refused (and 3 more workers)".
std::string TroubleOf(const Node& node) {
  if (node.unreachable_from.empty()) return "";
  const auto& [worker, why] = *node.unreachable_from.begin();
  const size_t more = node.unreachable_from.size() - 1;
  return fmt::format("{}: {}{}", worker, why,
                     more == 0 ? "" : fmt::format(" (and {} more workers)", more));
}

NodeStatus NodeOf(const MasterCore& core, const Node& node, TimePoint now) {
  const NodeRecord& record = node.record;
  NodeStatus status{.name = record.name,
                    .role = record.role,
                    .state = record.state,
                    .drain = node.drain.state,
                    .drain_left = node.drain.left,
                    .pid = record.pid,
                    .start = record.told_start.value(),
                    .incarnation = record.incarnation,
                    .restarts = RestartsOf(record),
                    .last_exit = record.last_exit,
                    .host = record.host,
                    .trouble = TroubleOf(node)};
  if (node.usage.memory_bytes > 0) status.own_usage = node.usage;
  if (const NodeHold* const hold = HoldOf(node)) {
    status.state = NodeState::kWaiting;
    status.wait = hold->wait;
    status.wait_reason = hold->reason;
  }
  if (node.last_heard.has_value()) status.heartbeat_age_ms = Millis(now - *node.last_heard);
  if (record.Is(NodeRole::kWorker)) status.worker = WorkerOf(core, node);
  if (record.Is(NodeRole::kServer)) status.server = ServerOf(core, node);
  return status;
}

std::string_view PartitionState(const MasterCore& core, const PartitionEntry& entry, bool serving) {
  const auto node = core.nodes().nodes().find(NodeTable::ServerName(entry.owner));
  const bool alive = entry.owner_incarnation != ServerIncarnation() &&
                     node != core.nodes().nodes().end() &&
                     node->second.record.state != NodeState::kExited;
  if (!alive) return "unowned";
  return serving ? "serving" : "restoring";
}

PartitionStatus PartitionOf(const MasterCore& core, PartitionId id, TimePoint now) {
  const PartitionEntry& entry = core.partitions().entry(id);
  const PartitionTable::Seen seen = core.partitions().SeenOf(id);
  const Manifest& manifest = core.partitions().manifest(id);
  PartitionStatus status{.partition = id.value(),
                         .owner = NodeTable::ServerName(entry.owner),
                         .owner_incarnation = entry.owner_incarnation.value(),
                         .owner_epoch = entry.epoch.value(),
                         .state = std::string(PartitionState(core, entry, seen.serving)),
                         .snapshot = manifest.number.value(),
                         .snapshot_cut = manifest.cut.value(),
                         .snapshot_files = static_cast<uint32_t>(manifest.files.size())};
  if (seen.accepted_at.has_value()) status.snapshot_age_ms = Millis(now - *seen.accepted_at);
  for (const SnapshotFile& file : manifest.files) status.snapshot_bytes += file.bytes;
  status.traffic = seen.traffic.value_or(PartitionTraffic{});
  status.traffic.partition = id;
  return status;
}

JobCounters CountersOf(const MasterCore& core) {
  const JobTotals& totals = core.totals();
  return {.redelivered_minibatches = totals.redelivered_minibatches,
          .replayed_shards = totals.replayed_shards,
          .reverified_runs = totals.reverified_runs,
          .reasserted_leases = totals.reasserted_leases,
          .expired_leases = totals.expired_leases,
          .parts_skipped = core.nodes().PartsSkipped(),
          .refused_dones = totals.refused_dones,
          .rejected_records = core.ledger().rejected_records(),
          .snapshots_accepted = totals.snapshots_accepted,
          .master_restarts = totals.master_restarts,
          .parts_stale = core.nodes().PartsStale()};
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

/// Counts every shard that matches, and describes those of the page.
class PageOfShards {
 public:
  PageOfShards(const MasterCore& core, const std::function<ShardWork(const ShardId&)>& work_of,
               uint64_t offset, uint32_t limit)
      : core_(core), work_of_(work_of), limit_(limit), page_{.offset = offset} {}

  /// `complete` adds what only its caller knows.
  template <typename Complete>
  void Add(const ShardId& shard, const char* state, const Complete& complete) {
    const uint64_t at = page_.total++;
    if (at < page_.offset || at - page_.offset >= limit_ || text_bytes_ >= kPageBytesMax) return;
    ShardStatus& status = page_.shards.emplace_back(Describe(shard));
    status.state = state;
    complete(&status);
    text_bytes_ += status.source.size();
    for (const std::string& reason : status.reasons) text_bytes_ += reason.size();
  }
  ShardPage Take() { return std::move(page_); }

 private:
  ShardStatus Describe(const ShardId& shard) const {
    const Ledger& ledger = core_.ledger();
    ShardStatus status{.id = ToString(shard),
                       .dataset = ledger.plan()[shard.dataset.value()].name,
                       .epoch = shard.epoch.value(),
                       .index = shard.index.value()};
    if (ledger.streams().Grows(shard.dataset)) {
      DescribeRange(ledger, shard, &status);
    } else {
      const ShardWork work = work_of_(shard);
      const SourceRun& first = work.runs.front();
      status.source = ValidUtf8(SourceTextOf(work));
      status.first_record = first.first_record;
      status.records = work.record_count;
      if (!work.has_numbers()) status.first_line = first.first_record + (work.has_header ? 2 : 1);
    }
    if (const FailureRecord* failure = ledger.FindFailure(shard)) {
      status.failures = failure->failures;
      status.node_failures = failure->node_failures;
      for (const std::string& reason : failure->reasons) {
        status.reasons.push_back(ValidUtf8(reason));
      }
    }
    return status;
  }

  const MasterCore& core_;
  const std::function<ShardWork(const ShardId&)>& work_of_;
  const uint32_t limit_;
  ShardPage page_;
  /// Trim limits the rest: there are at most so many entries, and the others are short.
  size_t text_bytes_ = 0;
};

template <typename Entry>
void TrimList(std::vector<Entry>* entries) {
  size_t count = 0;
  for (size_t bytes = 0; count < entries->size() && bytes < kPageBytesMax; ++count) {
    bytes += fields::Encode((*entries)[count]).size();
  }
  entries->erase(entries->begin() + static_cast<std::ptrdiff_t>(count), entries->end());
}

void AddRestoreTrouble(const MasterCore& core, JobStatus* to) {
  for (const auto& [name, node] : core.nodes().nodes()) {
    if (!node.restore.active()) continue;
    if (to->reason.empty()) {
      to->reason = ValidUtf8(fmt::format("{}: {}", name, node.restore.Text()));
    }
    to->unrestorable =
        core.state() == JobState::kFailed && node.restore.lasts() >= core.options().restore_timeout;
    if (to->unrestorable) return;
  }
  const GroupStores& group = core.group_stores();
  if (to->reason.empty()) to->reason = ValidUtf8(group.ReadText());
  to->unrestorable = core.state() == JobState::kFailed && group.unrestorable();
}

/// Text of the node that has failed to write for the longest time; empty: none has.
std::string WriteTextOf(const MasterCore& core, WriteTrouble Node::* trouble,
                        const WriteTrouble::Words& words, TimePoint now) {
  const Node* longest = nullptr;
  for (const auto& [name, node] : core.nodes().nodes()) {
    if (!(node.*trouble).active()) continue;
    if (longest == nullptr || (node.*trouble).since() < (longest->*trouble).since()) {
      longest = &node;
    }
  }
  return longest == nullptr ? "" : (longest->*trouble).Text(longest->record.name, words, now);
}

/// Work that is not committed is lost with the next failure of a server, so it is told like a wait.
void AddWriteTrouble(const MasterCore& core, TimePoint now, JobStatus* to) {
  if (!to->reason.empty() || IsTerminal(core.state())) return;
  to->reason = ValidUtf8(WriteTextOf(core, &Node::snapshots, WriteTrouble::kSnapshots, now));
  if (to->reason.empty()) to->reason = ValidUtf8(core.group_stores().WriteText(now));
  if (to->reason.empty()) {
    to->reason = ValidUtf8(WriteTextOf(core, &Node::outputs, WriteTrouble::kOutputs, now));
  }
}

}  // namespace

StatusFacts StatusFactsOf(const MasterCore& core, const std::string& job, StepTime at) {
  StatusFacts facts;
  JobStatus& status = facts.status;
  status.name = job;
  status.state = core.state();
  status.reason = core.reason();
  AddRestoreTrouble(core, &status);
  AddWriteTrouble(core, at.now, &status);
  if (status.reason.empty()) status.reason = ValidUtf8(core.StandstillText(at.now));
  for (uint32_t i = 0; i < core.ledger().plan().size(); ++i) {
    status.datasets.push_back(DatasetOf(core, DatasetId(i), at));
  }
  for (const auto& [name, node] : core.nodes().nodes()) {
    status.nodes.push_back(NodeOf(core, node, at.now));
  }
  status.progress = ProgressOf(status.datasets);
  facts.metrics = MetricsOf(core.ledger(), status.datasets);
  status.counters = CountersOf(core);
  status.group = GroupOf(core);
  for (const auto& [epoch, manifests] : core.kept().epochs()) {
    if (status.kept_epochs.size() == kKeptEpochsMax) break;
    status.kept_epochs.push_back({.epoch = epoch.value(),
                                  .best = core.epoch_ends().best() == epoch,
                                  .value = core.epoch_ends().ValueOf(epoch)});
  }
  status.events_newest = core.events().newest();
  status.uptime_ms = Millis(at.now - core.started_at());
  status.running_ms = static_cast<uint64_t>(core.RunningFor(at).count());
  status.master_incarnation = core.incarnation().value();
  status.done_seq = core.ledger().done_seq().value();
  status.commit_seq = core.ledger().commit_seq().value();
  status.grace_period = core.in_grace_period();
  if (!core.events().events().empty()) {
    const EventRecord& last = core.events().events().rbegin()->second;
    status.last_event = fmt::format("{}{}{}{}{}", last.kind, last.node.empty() ? "" : " ",
                                    last.node, last.text.empty() ? "" : ": ", last.text);
  }
  return facts;
}

JobStatus Complete(StatusFacts facts) {
  for (const StatusFacts::OfEpoch& one : facts.metrics) {
    AddMetrics(*one.metrics, &facts.status.datasets[one.dataset].epochs[one.epoch]);
  }
  facts.status.metric_trends = TrendsOf(facts.status.datasets);
  return std::move(facts.status);
}

absl::StatusOr<ShardPage> ShardsOf(const MasterCore& core, TimePoint now,
                                   const std::function<ShardWork(const ShardId&)>& work_of,
                                   const v1::ListShardsRequest& request) {
  const std::string& state = request.state();
  if (!state.empty() && state != "leased" && state != "done" && state != "failed") {
    return absl::InvalidArgumentError(
        fmt::format("state: expected leased, done or failed, got '{}'", state));
  }
  MUSTER_ASSIGN_OR_RETURN(const uint32_t limit, PageSize(request.limit()));
  PageOfShards page(core, work_of, request.offset(), limit);
  if (state.empty() || state == "failed") {
    for (const ShardId& shard : core.ledger().queue().FailedShards()) {
      page.Add(shard, "failed", [](ShardStatus*) {});
    }
  }
  if (state.empty() || state == "leased") {
    for (const auto& [token, lease] : core.leases().leases()) {
      page.Add(lease.shard, "leased", [&](ShardStatus* status) {
        status->worker = lease.worker.name;
        status->token = token.value();
        status->phase = PhaseName(lease.phase);
        status->minibatches_started = lease.minibatches_started;
        status->age_ms = Millis(now - lease.granted_at);
      });
    }
  }
  if (state.empty() || state == "done") {
    for (const DoneShard& done : core.ledger().queue().done()) {
      page.Add(done.shard, "done",
               [&](ShardStatus* status) { status->token = done.token.value(); });
    }
  }
  return page.Take();
}

absl::StatusOr<ShardMap> ShardMapOf(const MasterCore& core, const v1::GetShardMapRequest& request) {
  const ShardQueue& queue = core.ledger().queue();
  const DatasetId dataset(request.dataset());
  const EpochIndex epoch(request.epoch());
  if (!queue.ValidEpoch(dataset, epoch)) {
    return absl::NotFoundError(
        fmt::format("dataset {} has no epoch {}, or there is no such dataset", request.dataset(),
                    request.epoch()));
  }
  ShardMap map{.dataset = request.dataset(),
               .epoch = request.epoch(),
               .shards = queue.Counts(dataset, epoch).shards};
  if (request.begin() >= std::max<uint64_t>(map.shards, 1)) {
    return absl::InvalidArgumentError(
        fmt::format("begin: {} is beyond the epoch's {} shards", request.begin(), map.shards));
  }
  uint64_t begin = request.begin();
  for (const ShardSpan& run : queue.Runs(dataset, epoch, request.begin(), kShardRunsMax)) {
    map.runs.push_back({.begin = begin, .end = run.end, .state = std::string(ToString(run.state))});
    begin = run.end;
  }
  return map;
}

absl::StatusOr<MasterEvents> EventsOf(const MasterCore& core,
                                      const v1::ListEventsRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t limit, PageSize(request.limit()));
  MasterEvents page;
  size_t text_bytes = 0;
  for (const EventRecord& event : core.events().After(request.after(), limit)) {
    if (text_bytes >= kPageBytesMax) break;
    text_bytes += event.text.size();
    page.events.push_back({.sequence = event.sequence,
                           .wall_us = static_cast<uint64_t>(event.wall.count()),
                           .kind = event.kind,
                           .node = event.node,
                           .text = event.text});
  }
  return page;
}

absl::StatusOr<PartitionList> PartitionsOf(const MasterCore& core, TimePoint now,
                                           const v1::ListPartitionsRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const uint32_t limit, PageSize(request.limit()));
  PartitionList page{.total = core.partitions().size(), .offset = request.offset()};
  for (uint64_t p = request.offset(); p < page.total && p - request.offset() < limit; ++p) {
    page.partitions.push_back(PartitionOf(core, PartitionId(static_cast<uint32_t>(p)), now));
  }
  return page;
}

void Trim(ShardPage* page) {
  TrimList(&page->shards);
}
void Trim(MasterEvents* page) {
  TrimList(&page->events);
}
void Trim(PartitionList* page) {
  TrimList(&page->partitions);
}

}  // namespace muster
