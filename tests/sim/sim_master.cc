#include "tests/sim/sim_master.h"

#include <set>

#include "base/check.h"
#include "base/words/exit_codes.h"
#include "tests/sim/planted/planted_bug.h"
#include "tests/sim/sim_server.h"

namespace muster::sim {
namespace {

constexpr milliseconds kTick{50};
constexpr milliseconds kLookEvery{1'000};

}  // namespace

SimMaster::SimMaster(Env* env, ProcessRef process, CoreOptions options, std::string machine)
    : env_(env),
      process_(std::move(process)),
      options_(std::move(options)),
      machine_(std::move(machine)),
      rng_(env->Stream(1, process_->id)),
      topic_watch_(env, process_, this) {}

StepTime SimMaster::At() const {
  // Wall clocks jump; nothing may depend on them.
  const auto wall = static_cast<int64_t>(HashWords(process_->id, env_->scheduler.steps()) >> 16);
  return {process_->Local(env_->scheduler.now()), WallTime(wall)};
}

std::set<std::string> SimMaster::NamedFiles(const DurableState& state) {
  std::set<std::string> named;
  for (const auto& [id, partition] : state.partitions) {
    for (const SnapshotFile& file : partition.manifest.files) named.insert(file.name);
  }
  if (state.group.checkpoint.has_value()) {
    for (const StateStripe& stripe : state.group.checkpoint->stripes) named.insert(stripe.object);
  }
  for (const auto& [epoch, manifests] : state.kept) {
    for (const auto& [id, manifest] : manifests) {
      for (const SnapshotFile& file : manifest.files) named.insert(file.name);
    }
  }
  return named;
}

void SimMaster::Start() {
  const StartChoice choice = env_->journal.Choose(machine_);
  generation_ = choice.number;
  if (choice.what != StartChoice::What::kContinue) env_->journal.Make(choice, machine_);
  if (choice.what == StartChoice::What::kTakeOver) return TakeOver();
  Begin();
}

void SimMaster::Then(std::function<void()> step) {
  env_->scheduler.After(nanoseconds(rng_.Below(10'000'000)), process_, std::move(step));
}

void SimMaster::TakeOver() {
  env_->probes.Hit(Probe::kTakeOver);
  env_->Say(*process_, "takes over the journal as generation {}", generation_);
  const auto close = [this] { env_->journal.CloseBefore(generation_); };
  const auto copy = [this] {
    if (Look()) env_->journal.Copy(generation_);
  };
  const bool copies_first = IsPlanted("copy-before-close");
  Then([this, close, copy, copies_first] {
    copies_first ? copy() : close();
    Then([this, close, copy, copies_first] {
      copies_first ? close() : copy();
      if (process_->alive) Then([this] { Begin(); });
    });
  });
}

bool SimMaster::Look() {
  looked_at_ = env_->scheduler.now();
  if (env_->journal.IsOpen(generation_)) return true;
  env_->probes.Hit(Probe::kFenced);
  env_->Exit(process_, {.exit_code = kTakenOverExit});
  return false;
}

void SimMaster::Begin() {
  DurableState state = env_->journal.state(generation_);
  if (!Look()) return;
  const std::set<std::string> named = NamedFiles(state);
  if (const absl::Status fits = MasterCore::CheckFits(options_, state); !fits.ok()) {
    return env_->oracle.Fail("start", fits.ToString());
  }
  core_ = std::make_unique<MasterCore>(options_, std::move(state), At());
  commit_ = std::make_unique<GroupCommit>(core_.get(), kTick, At().now);
  counted_ = core_->totals();
  env_->Say(*process_, "incarnation {}: {}", core_->incarnation().value(),
            core_->new_run() ? "a new run" : "continues");
  Then([this, named] {
    if (core_->new_run()) env_->disk.DeleteOrphans(named, core_->incarnation());
    Write(core_->TakeMutations(), [this] {
      serving_ = true;
      Tick();
      if (env_->knobs.stream) topic_watch_.Start();
    });
  });
}

void SimMaster::CheckAnswer() {
  const DurableState& state = env_->journal.state(generation_);
  env_->oracle.OnAnswer(*core_, state, env_->journal.idle(generation_));
  if (env_->knobs.group.has_value()) env_->judge.OnAnswer(*core_, state);
}

void SimMaster::Post(GroupCommit::Item item) {
  queue_.push_back(std::move(item));
  Kick();
}

void SimMaster::Tick() {
  Kick();
  env_->scheduler.After(kTick, process_, [this] { Tick(); });
}

void SimMaster::Kick() {
  if (kicked_ || writing_ || !serving_) return;
  kicked_ = true;
  env_->scheduler.After(nanoseconds(10'000 + rng_.Below(300'000)), process_, [this] {
    kicked_ = false;
    RunBatch();
  });
}

void SimMaster::RunBatch() {
  if (queue_.size() > 1) env_->probes.Hit(Probe::kGroupCommit);
  const JobState before = core_->state();
  std::vector<Mutation> mutations = commit_->Step(std::exchange(queue_, {}), At());
  CountProbes();
  if (env_->knobs.group.has_value()) env_->judge.OnStepped(*core_, mutations);
  if (env_->knobs.servers > 0) CheckDone(mutations);
  if (IsPlanted("files-too-early")) Delete(core_->TakeUnusedFiles());
  if (core_->state() != before) {
    env_->Say(*process_, "the job is {}: {}", ToString(core_->state()), core_->reason());
  }
  Write(std::move(mutations), [this] {
    Delete(commit_->Synced());
    if (!queue_.empty()) Kick();
  });
}

void SimMaster::Delete(const std::vector<std::string>& unused) {
  if (unused.empty()) return;
  const std::set<std::string> named = NamedFiles(env_->journal.state());
  for (const std::string& name : unused) {
    env_->Say(*process_, "deletes {}", name);
    if (named.contains(name)) env_->oracle.Fail("manifest", name + " is deleted, and is named");
    env_->model_store.erase(name);
  }
  env_->disk.Delete(unused);
}

void SimMaster::Write(std::vector<Mutation> mutations, std::function<void()> synced) {
  if (mutations.empty()) {
    if (env_->scheduler.now() - looked_at_ < kLookEvery || Look()) synced();
    return;
  }
  writing_ = true;
  env_->Say(*process_, "writes {} records", mutations.size());
  const bool open_before = env_->journal.IsOpen(generation_);
  env_->journal.Write(process_, generation_, std::move(mutations),
                      [this, open_before, synced = std::move(synced)](const absl::Status& status) {
                        if (status.ok()) return Synced(open_before, synced);
                        env_->probes.Hit(Probe::kJournalError);
                        env_->Exit(process_, {.exit_code = 1});
                      });
}

void SimMaster::Synced(bool open_before, const std::function<void()>& synced) {
  env_->scheduler.After(nanoseconds(rng_.Below(200'000)), process_, [this, open_before, synced] {
    writing_ = false;
    const bool answers_anyway = IsPlanted("no-look") ||
                                (IsPlanted("look-before-sync") && open_before) ||
                                (IsPlanted("no-look-at-start") && !serving_);
    if (answers_anyway || Look()) synced();
  });
}

const ps::Partition* SimMaster::Current(PartitionId id) const {
  const PartitionEntry& entry = core_->partitions().entry(id);
  const SimServer* server =
      env_->FindServer(entry.owner, entry.owner_incarnation, /*dead_too=*/true);
  return server == nullptr ? nullptr : server->Find(id, entry.epoch);
}

void SimMaster::CheckDone(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    if (const auto* cut = std::get_if<StreamShardRecord>(&mutation)) {
      env_->probes.Hit(Probe::kStreamRange);
      const uint64_t full =
          options_.datasets[kStreamDataset.value()].stream->cut.minibatch_size *
          options_.datasets[kStreamDataset.value()].stream->cut.minibatches_per_shard;
      const OffsetRange& last = cut->cut.ranges.back();
      if (cut->cut.offsets() < full && last.end < SimTopic::kOffsets) {
        env_->probes.Hit(Probe::kPartialRange);
      }
      env_->probes.Hit(Probe::kManyRanges, cut->cut.ranges.size() > 1);
    }
    env_->probes.Hit(Probe::kKeptEpoch, std::holds_alternative<KeptRecord>(mutation));
    if (const auto* done = std::get_if<DoneRecord>(&mutation)) {
      // DONE and to be run again within one batch, so no worker knows of it.
      if (!core_->ledger().queue().done().Contains(done->done.seq)) continue;
      // Of a group: a replay brings the parts.
      if (core_->ledger().LacksParts(done->done.shard)) {
        env_->probes.Hit(Probe::kGroupLacksParts);
        continue;
      }
      env_->probes.Hit(Probe::kGroupReplayed, done->pushed_again > done->done.seq);
      env_->Say(*process_, "shard {} is DONE {}", ToString(done->done.shard),
                done->done.seq.value());
      // What a master says that is closed out never counts.
      if (!env_->journal.IsOpen(generation_)) continue;
      env_->oracle.OnDone(*done, [this](PartitionId id) { return Current(id); });
    }
  }
}

void SimMaster::CountProbes() {
  const JobTotals& now = core_->totals();
  Probes& probes = env_->probes;
  probes.Hit(Probe::kReplay, now.replayed_shards - counted_.replayed_shards);
  probes.Hit(Probe::kReverify, now.reverified_runs - counted_.reverified_runs);
  probes.Hit(Probe::kReasserted, now.reasserted_leases - counted_.reasserted_leases);
  probes.Hit(Probe::kExpired, now.expired_leases - counted_.expired_leases);
  probes.Hit(Probe::kRefusedDone, now.refused_dones - counted_.refused_dones);
  counted_ = now;
  if (core_->in_grace_period() && core_->leases().size() > 0) probes.Hit(Probe::kGrace);
  const uint64_t failed = core_->ledger().queue().failed_count();
  if (failed > failed_) probes.Hit(Probe::kFailedShard);
  failed_ = failed;
  uint64_t thinned = 0;
  for (uint32_t i = 0; i < core_->ledger().plan().size(); ++i) {
    thinned += core_->ledger().totals().ThinnedEpochs(DatasetId(i));
  }
  if (thinned > thinned_) probes.Hit(Probe::kThinnedEpoch);
  thinned_ = thinned;
  const ForgetState& forget = core_->forget_state();
  if (forget.version == forgotten_.version) return;
  const bool same = forget.shards == forgotten_.shards && forget.epochs == forgotten_.epochs;
  probes.Hit(same ? Probe::kForgetAgain : Probe::kForget);
  if (forget.epochs != forgotten_.epochs) probes.Hit(Probe::kForgetEpoch);
  forgotten_ = forget;
}

}  // namespace muster::sim
