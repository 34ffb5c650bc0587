#include "tests/sim/sim_master.h"

#include <set>

#include "base/check.h"
#include "base/planted_bug.h"
#include "tests/sim/sim_server.h"

namespace muster::sim {
namespace {

constexpr milliseconds kTick{50};

}  // namespace

SimMaster::SimMaster(Env* env, ProcessRef process, CoreOptions options)
    : env_(env),
      process_(std::move(process)),
      options_(std::move(options)),
      rng_(env->Stream(1, process_->id)),
      topic_watch_(env, process_) {}

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
  for (const auto& [epoch, manifests] : state.kept) {
    for (const auto& [id, manifest] : manifests) {
      for (const SnapshotFile& file : manifest.files) named.insert(file.name);
    }
  }
  return named;
}

void SimMaster::Start() {
  DurableState state = env_->journal.state();
  const std::set<std::string> named = NamedFiles(state);
  if (const absl::Status fits = MasterCore::CheckFits(options_, state); !fits.ok()) {
    return env_->oracle.Fail("start", fits.ToString());
  }
  core_ = std::make_unique<MasterCore>(options_, std::move(state), At());
  if (core_->new_run()) env_->disk.DeleteOrphans(named);
  commit_ = std::make_unique<GroupCommit>(core_.get(), kTick, At().now);
  counted_ = core_->totals();
  env_->Say(*process_, "incarnation {}: {}", core_->incarnation().value(),
            core_->new_run() ? "a new run" : "continues");
  Write(core_->TakeMutations(), [this] {
    serving_ = true;
    Tick();
    if (env_->knobs.stream) topic_watch_.Start();
  });
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
  CheckDone(mutations);
  if (MUSTER_PLANTED(kFilesTooEarly)) Delete(core_->TakeUnusedFiles());
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
  }
  env_->disk.Delete(unused);
}

void SimMaster::Write(std::vector<Mutation> mutations, std::function<void()> synced) {
  if (mutations.empty()) return synced();
  writing_ = true;
  env_->Say(*process_, "writes {} records", mutations.size());
  env_->journal.Write(process_, std::move(mutations),
                      [this, synced = std::move(synced)](const absl::Status& status) {
                        writing_ = false;
                        if (status.ok()) return synced();
                        env_->probes.Hit(Probe::kJournalError);
                        env_->Exit(process_, {.exit_code = 1});
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
    if (const auto* cut = std::get_if<StreamRangeRecord>(&mutation)) {
      env_->probes.Hit(Probe::kStreamRange);
      const uint64_t full =
          options_.datasets[kStreamDataset.value()].stream->cut.minibatch_size *
          options_.datasets[kStreamDataset.value()].stream->cut.minibatches_per_shard;
      if (cut->range.end - cut->range.begin < full && cut->range.end < SimTopic::kOffsets) {
        env_->probes.Hit(Probe::kPartialRange);
      }
    }
    env_->probes.Hit(Probe::kKeptEpoch, std::holds_alternative<KeptRecord>(mutation));
    if (const auto* done = std::get_if<DoneRecord>(&mutation)) {
      // DONE and to be run again within one batch, so no worker knows of it.
      if (!core_->ledger().queue().done().Contains(done->done.seq)) continue;
      env_->Say(*process_, "shard {} is DONE {}", ToString(done->done.shard),
                done->done.seq.value());
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
  const ForgetState& forget = core_->forget_state();
  if (forget.version == forgotten_.version) return;
  probes.Hit(forget.shards == forgotten_.shards ? Probe::kForgetAgain : Probe::kForget);
  forgotten_ = forget;
}

}  // namespace muster::sim
