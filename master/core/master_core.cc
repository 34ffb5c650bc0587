#include "master/core/master_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

/// If only counts have changed, they are written no more often than this.
constexpr std::chrono::seconds kTotalsInterval{1};
/// Ticks come about every 50 ms. If there was none for this long, the process stood still.
constexpr std::chrono::seconds kPauseMin{1};

Forgetting::Shards CommittedTraining(const CoreOptions& options, const DurableState& state) {
  const auto is_evaluate = [&](DatasetId dataset) {
    return options.datasets[dataset.value()].mode != DatasetMode::kTrain;
  };
  Forgetting::Shards shards;
  for (const auto& [dataset, record] : state.whole_epochs) {
    if (!is_evaluate(dataset)) shards.epochs[dataset] = record.epochs;
  }
  for (const auto& [key, record] : state.epochs) {
    if (is_evaluate(key.first) || record.committed.empty()) continue;
    const auto whole = shards.epochs.find(key.first);
    if (whole != shards.epochs.end() && whole->second.Contains(key.second.value())) continue;
    shards.shards[key] = record.committed;
  }
  return shards;
}

MasterIncarnation LastIncarnation(const DurableState& state) {
  return state.meta.has_value() ? state.meta->incarnation : MasterIncarnation();
}

EpochEnds::Ended EndedIn(const std::optional<MetaRecord>& meta) {
  if (!meta.has_value()) return {};
  return {meta->epochs_ended, {meta->gain_epoch, meta->gain_rule}};
}

/// The newest server incarnation ever given.
ServerIncarnation NewestServer(const DurableState& state) {
  return state.meta.has_value() ? state.meta->newest_server_incarnation : ServerIncarnation();
}

}  // namespace

absl::Status MasterCore::CheckFits(const CoreOptions& options, const DurableState& state) {
  if (!state.partitions.empty() && state.partitions.size() != options.partitions) {
    return absl::FailedPreconditionError(
        fmt::format("the journal has {} partitions, but the job file {}: spec.partitions may not "
                    "change on resume",
                    state.partitions.size(), options.partitions));
  }
  MUSTER_RETURN_IF_ERROR(GroupJob::CheckFits(options, state));
  return Ledger::CheckFits(options.datasets, state);
}

MasterCore::MasterCore(CoreOptions options, MasterIncarnation incarnation, DurableState&& state,
                       StepTime at)
    : books_(std::move(options), incarnation, &state, at.now),
      tables_(std::move(state.tables)),
      failures_(&books_, &books_.ledger),
      leasing_(&books_, &books_.ledger, &books_.totals, &failures_,
               CommittedTraining(books_.options, state)),
      dones_(&books_, &books_.ledger, &books_.totals, &leasing_),
      epoch_ends_(&books_, &books_.ledger.queue(), state.kept, EndedIn(state.meta)),
      life_(&books_, &leasing_, &epoch_ends_),
      snapshots_(&books_, &books_.ledger, &books_.partitions, &books_.nodes, &books_.totals,
                 &leasing_, &epoch_ends_, &life_),
      group_shards_(&books_, &books_.ledger, &books_.totals, &failures_, &leasing_, &dones_, &life_,
                    &snapshots_),
      group_(&books_, &group_shards_, &life_, std::move(state.group), at.now),
      drains_(&books_, &books_.nodes, &leasing_, &life_, &group_),
      streams_(&books_, &books_.ledger, &failures_, &leasing_, &life_),
      sessions_(&books_, &books_.nodes, &books_.totals, &leasing_, &streams_),
      servers_(&books_, &books_.partitions, &books_.nodes, &leasing_, &life_, &snapshots_, &drains_,
               &tables_, NewestServer(state)),
      map_teller_(&books_, &books_.partitions),
      reports_(&books_, &books_.nodes, &failures_, &leasing_, &life_, &drains_, &sessions_,
               &group_),
      standstill_(books_.ledger.done_seq(), at.now),
      started_at_(at.now),
      meta_at_(at.now),
      now_(at.now),
      ticked_at_(at.now) {}

MasterCore::MasterCore(CoreOptions options, DurableState state, StepTime at)
    : MasterCore(std::move(options), LastIncarnation(state).Next(), std::move(state), at) {
  Begin(state.meta, at);
}

MasterCore::MasterCore(CoreOptions options, DurableState state, AsFound)
    : MasterCore(std::move(options), LastIncarnation(state), std::move(state), StepTime{}) {
  if (!state.meta.has_value()) return;
  life_.Resume(*state.meta, {});
  run_clock_.Resume(*state.meta, LastWord().value_or(WallTime{0}));
}

std::optional<WallTime> MasterCore::LastWord() const {
  const auto& events = books_.events().events();
  if (events.empty()) return std::nullopt;
  return events.rbegin()->second.wall;
}

std::chrono::milliseconds MasterCore::RunningFor(StepTime at) const {
  const bool ended = life_.over() || at.wall == WallTime{0};
  if (!ended) return run_clock_.Running(at.wall);
  return run_clock_.Running(std::max(LastWord().value_or(at.wall), run_clock_.seen()));
}

void MasterCore::Begin(const std::optional<MetaRecord>& meta, StepTime at) {
  collected_ = meta;
  new_run_ = !meta.has_value() || meta->run_id != books_.options.run_id;
  if (new_run_) {
    run_clock_.BeginRun(meta, LastWord(), at.wall);
    BeginRun(at);
  } else {
    GoOn(*meta, at);
  }
  for (const auto& [name, node] : books_.nodes.nodes()) {
    // Master and scaler send no heartbeats.
    const bool speaks = node.record.Is(NodeRole::kWorker) || node.record.Is(NodeRole::kServer);
    if (!speaks) continue;
    Node* const found = books_.nodes.Find(name);
    if (node.record.state == NodeState::kRunning) found->last_heard = at.now;
    // Its supervisor has told the master before this one.
    if (node.record.told_start != StartNumber()) found->told_at = at.now;
  }
  if (books_.options.retry_failed && new_run_) {
    for (const ShardId& shard : books_.ledger.queue().FailedShards()) books_.ledger.Retry(shard);
  }
  snapshots_.Commit(at);
  life_.CheckRejects(at);
  life_.CheckLimits(at);
  life_.CheckEnd(at);
}

void MasterCore::BeginRun(StepTime at) {
  const ShardQueue& queue = books_.ledger.queue();
  books_.nodes.BeginRun();
  books_.Say(
      at, "run-started", "",
      fmt::format("incarnation {}: {} of {} shards COMMITTED, {} on {}", books_.incarnation.value(),
                  CountText(queue.committed_count()), CountText(queue.shard_count()),
                  CountText(books_.options.partitions, "partition"),
                  CountText(books_.options.servers, "server")));
  snapshots_.Replay(books_.partitions.BeginRun(books_.options.servers), "a new run began", at);
  group_.BeginRun(at);
}

void MasterCore::GoOn(const MetaRecord& meta, StepTime at) {
  const ShardQueue& queue = books_.ledger.queue();
  life_.Resume(meta, at.now);
  run_clock_.Resume(meta, at.wall);
  ++books_.totals.master_restarts;
  std::set<std::string> workers;
  for (const auto& [name, node] : books_.nodes.nodes()) {
    const bool runs = node.record.state == NodeState::kRunning;
    if (node.record.Is(NodeRole::kWorker) && runs) workers.insert(name);
  }
  leasing_.grace().Begin(std::move(workers), at.now + books_.options.leases.grace_period);
  books_.Say(at, "master-restarted", "master",
             fmt::format("incarnation {} continues from the journal: {} of {} shards COMMITTED, {} "
                         "DONE",
                         books_.incarnation.value(), CountText(queue.committed_count()),
                         CountText(queue.shard_count()), CountText(queue.done().size())));
}

absl::Status MasterCore::HelloWorker(const WorkerKey& worker, StartNumber start, StepTime at) {
  now_ = at.now;
  const Node* const node = books_.nodes.Find(worker.name);
  const uint64_t former = node == nullptr ? 0 : node->record.incarnation;
  MUSTER_RETURN_IF_ERROR(sessions_.Begin(worker, start, at));
  if (former != 0 && former != worker.incarnation) {
    group_.Exited({worker.name, former}, {}, "", at);
  }
  life_.CheckEnd(at);
  return absl::OkStatus();
}

bool MasterCore::NobodyTrains() const {
  return !group_.on() && leasing_.table().size() == 0 && !leasing_.grace().on();
}

absl::StatusOr<TableId> MasterCore::RegisterTable(const TableSpec& table, StepTime at) {
  now_ = at.now;
  const absl::StatusOr<TableRegistry::Registered> registered = tables_.Register(table);
  if (!registered.ok()) {
    // kNotFound asks for the hash. Anything else fails in the same way after every restart.
    const bool hopeless = !absl::IsNotFound(registered.status()) && NobodyTrains();
    if (hopeless && !life_.over()) {
      life_.End(JobState::kFailed, Message(registered.status()), at);
    }
    return registered.status();
  }
  if (registered->added) {
    books_.Say(at, "table-registered", "", ToString(tables_.tables().at(registered->id)));
  }
  return registered->id;
}

absl::StatusOr<WorkerExchangeReply> MasterCore::ExchangeWorker(const WorkerExchangeRequest& request,
                                                               StepTime at) {
  now_ = at.now;
  const WorkerKey worker{request.worker, request.incarnation};
  MUSTER_ASSIGN_OR_RETURN(const WorkerSessions::Call call, sessions_.Hear(request, at));
  const bool newest = call == WorkerSessions::Call::kNewest;
  WorkerExchangeReply reply;
  reply.master_incarnation = books_.incarnation;
  reply.heartbeat_interval = books_.options.leases.heartbeat_interval;
  if (newest) leasing_.TakeHeld(request, worker, at, &reply.lost);
  const std::optional<std::string> fatal =
      leasing_.TakeReturned(request, worker, drains_.DirectiveOf(worker.name), at);
  if (fatal.has_value()) life_.End(JobState::kFailed, *fatal, at);
  for (const DoneReport& done : request.done) {
    reply.verdicts.push_back(dones_.Take(done, worker, at));
  }
  life_.CheckRejects(at);
  life_.CheckLimits(at);
  life_.CheckEnd(at);
  reply.directive = drains_.DirectiveOf(worker.name);
  if (newest) {
    const bool works = reply.directive == JobDirective::kWork && !group_.on();
    const uint32_t shards_max = works ? kGrantsPerCallMax : 0;
    leasing_.Grant(request, worker, {shards_max, life_.MayGrantMore()}, at, &reply);
  }
  drains_.WorkerTold(worker.name, newest, at);
  return reply;
}

absl::Status MasterCore::ExchangeGroup(const GroupExchangeRequest& request, StepTime at) {
  now_ = at.now;
  if (!group_.on()) {
    return absl::FailedPreconditionError(
        "the job has no synchronous group: spec.group of the job file begins one");
  }
  MUSTER_RETURN_IF_ERROR(sessions_.HearMember({request.worker, request.incarnation}, at));
  MUSTER_RETURN_IF_ERROR(group_.Exchange(request, at));
  life_.CheckRejects(at);
  life_.CheckLimits(at);
  life_.CheckEnd(at);
  drains_.WorkerTold(request.worker, true, at);
  return absl::OkStatus();
}

uint64_t MasterCore::GroupNewsFor(const WorkerKey& worker) const {
  return group_.on() ? group_.core().NewsFor(worker.name, worker.incarnation) : 0;
}

bool MasterCore::IsGroupCallDue(const GroupExchangeRequest& call, TimePoint since,
                                TimePoint now) const {
  if (!group_.on() || call.master_incarnation != books_.incarnation || call.gone) return true;
  const uint64_t news = GroupNewsFor({call.worker, call.incarnation});
  return news == 0 || news > call.news ||
         group_.core().HasNewerCall(call.worker, call.incarnation, call.sequence) ||
         now - since >= books_.options.group->heartbeat_interval;
}

GroupExchangeReply MasterCore::GroupReplyFor(const WorkerKey& worker) const {
  GroupExchangeReply reply = group_.core().ReplyFor(worker.name, worker.incarnation);
  reply.directive = drains_.DirectiveOf(worker.name);
  reply.succeeded = life_.state() == JobState::kSucceeded;
  const std::optional<ShardId> ahead = GroupAhead();
  if (reply.work.has_value()) {
    reply.work->work = leasing_.WorkOf(reply.work->shard);
    reply.work->restore_epoch = books_.partitions.restore_epoch();
  }
  if (reply.work.has_value() && ahead.has_value()) reply.ahead = leasing_.WorkOf(*ahead);
  return reply;
}

std::optional<ShardId> MasterCore::GroupAhead() const {
  return group_.on() ? group_.core().ahead() : std::nullopt;
}

absl::StatusOr<RegisterServerReply> MasterCore::RegisterServer(const RegisterServerRequest& request,
                                                               StepTime at) {
  now_ = at.now;
  return servers_.Register(request, at);
}

ServerExchangeReply MasterCore::ExchangeServer(const ServerExchangeRequest& request, StepTime at) {
  now_ = at.now;
  return servers_.Exchange(request, at);
}

void MasterCore::TakeLook(const StreamLook& look, StepTime at) {
  now_ = at.now;
  streams_.See(look, at);
}

void MasterCore::ReportNode(const NodeReport& report, StepTime at) {
  now_ = at.now;
  reports_.Take(report, at);
}

absl::StatusOr<uint64_t> MasterCore::RetryShards(const std::vector<ShardId>& shards, StepTime at) {
  now_ = at.now;
  if (life_.over()) {
    return absl::FailedPreconditionError(
        fmt::format("the job has ended ({}): `muster run --retry-failed` runs its FAILED shards "
                    "again",
                    ToString(life_.state())));
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t retried, failures_.Retry(shards, at));
  if (retried > 0) life_.CheckLimits(at);
  return retried;
}

void MasterCore::Drain(StepTime at) {
  now_ = at.now;
  life_.Drain(at);
}

absl::StatusOr<NodeDrain> MasterCore::DrainNode(const std::string& name,
                                                std::chrono::milliseconds timeout, StepTime at) {
  now_ = at.now;
  return drains_.Drain(name, timeout, at);
}

absl::Status MasterCore::ResumeNode(const std::string& name, StepTime at) {
  now_ = at.now;
  return drains_.Resume(name, at);
}

absl::Status MasterCore::Cancel(const CancelOptions& options, StepTime at) {
  now_ = at.now;
  return life_.Cancel(options, at);
}

void MasterCore::Tick(StepTime at) {
  now_ = at.now;
  ForgiveOwnPause(at.now);
  if (leasing_.grace().Tick(at.now)) life_.CheckEnd(at);
  sessions_.Tick(at);
  leasing_.ExpireStuck(at);
  servers_.Tick(at);
  snapshots_.Commit(at);
  group_.Tick(at);
  drains_.Tick(at);
  streams_.Tick(at);
  leasing_.TellFloor();
  life_.Tick(at);
  standstill_.See(books_.ledger.done_seq(), at.now);
  if (!life_.over()) run_clock_.See(at.wall);
}

void MasterCore::ForgiveOwnPause(TimePoint now) {
  // One second of it counts. So dead nodes are also found if every tick is late, on a slow disk.
  const std::chrono::nanoseconds gap = now - ticked_at_ - kPauseMin;
  ticked_at_ = now;
  if (gap.count() <= 0) return;
  sessions_.Forgive(gap, now);
  leasing_.Forgive(gap, now);
  group_.Forgive(gap, now);
  books_.nodes.Forgive(gap, now);
}

MetaRecord MasterCore::Meta() const {
  MetaRecord meta;
  meta.incarnation = books_.incarnation;
  meta.done_seq = books_.ledger.done_seq();
  meta.commit_seq = books_.ledger.commit_seq();
  meta.map_version = books_.partitions.version();
  meta.restore_epoch = books_.partitions.restore_epoch();
  meta.newest_server_incarnation = servers_.newest();
  meta.state = life_.state();
  meta.reason = life_.reason();
  meta.run_id = books_.options.run_id;
  meta.totals = books_.totals;
  meta.snapshot_directory = books_.options.snapshot_directory;
  meta.epochs_ended = epoch_ends_.ended();
  meta.gain_epoch = epoch_ends_.gain().epoch;
  meta.gain_rule = epoch_ends_.gain().rule;
  run_clock_.Save(&meta);
  return meta;
}

void MasterCore::CheckBooks(const MetaRecord& meta) const {
  MUSTER_CHECK(books_.ledger.queue().leased_count() == leasing_.table().size());
  MUSTER_CHECK(group_.FitsLedger());
  MUSTER_CHECK(meta.commit_seq <= meta.done_seq);
  if (!collected_.has_value()) return;
  MUSTER_CHECK(collected_->done_seq <= meta.done_seq);
  MUSTER_CHECK(collected_->commit_seq <= meta.commit_seq);
  MUSTER_CHECK(collected_->epochs_ended <= meta.epochs_ended);
  MUSTER_CHECK(collected_->map_version <= meta.map_version);
  MUSTER_CHECK(collected_->restore_epoch <= meta.restore_epoch);
  MUSTER_CHECK(collected_->newest_server_incarnation <= meta.newest_server_incarnation);
  // A later start may continue a job that has ended.
  MUSTER_CHECK(!IsTerminal(collected_->state) || collected_->state == meta.state ||
               collected_->incarnation < meta.incarnation);
}

std::vector<std::string> MasterCore::TakeUnusedFiles() {
  std::vector<std::string> files = snapshots_.TakeUnusedFiles();
  for (std::string& file : epoch_ends_.TakeUnusedFiles()) files.push_back(std::move(file));
  for (std::string& file : group_.TakeUnusedFiles()) files.push_back(std::move(file));
  return files;
}

std::vector<Mutation> MasterCore::TakeMutations() {
  std::vector<Mutation> mutations;
  books_.ledger.Collect(&mutations);
  books_.partitions.Collect(&mutations);
  epoch_ends_.Collect(&mutations);
  books_.nodes.Collect(&mutations);
  tables_.Collect(&mutations);
  books_.CollectEvents(&mutations);
  group_.Collect(&mutations);
  MetaRecord meta = Meta();
  CheckBooks(meta);
  if (collected_.has_value() && now_ - meta_at_ < kTotalsInterval) {
    meta.totals = collected_->totals;
  }
  if (mutations.empty() && meta == collected_) return mutations;
  meta.totals = books_.totals;
  meta_at_ = now_;
  collected_ = meta;
  mutations.push_back(std::move(meta));
  return mutations;
}

}  // namespace muster
