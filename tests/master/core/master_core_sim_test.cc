// One real MasterCore with its journal among random workers and servers that follow
// docs/protocol.md: crashes of everything, lost, late and doubled calls, zombies. The parts that
// the servers apply are counted, so that a lost or doubled update is seen.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "master/core/master_core.h"
#include "tests/master/core/sim_actors.h"
#include "tests/support/memory_journal.h"
#include "tests/support/seeds.h"

namespace muster {
namespace {

using testing::Ack;
using testing::Complete;
using testing::Held;
using testing::kBatches;
using testing::kPartitions;
using testing::Probes;
using testing::Push;
using testing::State;
using testing::Touches;
using Server = testing::SimServer;
using Worker = testing::SimWorker;

constexpr uint32_t kWorkers = 3, kServers = 2, kShards = 3, kEpochs = 2;

class World {
 public:
  World(uint64_t seed, PlantedBugs bugs, Probes* probes) : rng_(seed), probes_(probes) {
    options_.datasets = {Plan("train", DatasetMode::kTrain, kShards),
                         Plan("test", DatasetMode::kEvaluate, 1)};
    options_.partitions = kPartitions;
    options_.servers = kServers;
    options_.run_id = "run";
    options_.snapshot_interval = std::chrono::milliseconds(200);
    options_.snapshot_timeout = std::chrono::milliseconds(1000);
    options_.leases.grace_period = std::chrono::milliseconds(1500);
    options_.leases.duration = std::chrono::milliseconds(2000);
    options_.planted_bugs = bugs;
    for (Worker& worker : workers_) worker.incarnation = ++ids_;
    for (Server& server : servers_) server.nonce = ++ids_;
    StartMaster();
  }

  void Run() {
    const int faulty = static_cast<int>(200 + rng_.Below(1200));
    for (int i = 0; i < faulty && !failed_; ++i) Step(true);
    Heal();
    int bound = 60000;
    while (!failed_ && core_->state() == JobState::kRunning && bound-- > 0) Step(false);
    if (failed_) return;
    if (core_->state() != JobState::kSucceeded) return Fail("the job does not end");
    for (const Push& push : late_) Deliver(push);
    for (int i = 0; i < 3000 && !failed_ && !AllServed(); ++i) Step(false);
    for (const Push& push : late_) Deliver(push);
    CheckEnd();
  }
  const std::string& failure() const { return failure_; }

 private:
  static DatasetPlan Plan(const std::string& name, DatasetMode mode, uint64_t shards) {
    DatasetPlan plan{name, mode, kEpochs, shards, shards * kBatches, 1, nullptr};
    plan.size_of = [](EpochIndex, ShardIndex) { return ShardSize{kBatches, kBatches}; };
    return plan;
  }
  bool Chance(uint64_t percent) { return rng_.Below(100) < percent; }
  void Fail(const std::string& what) {
    if (!failed_) failure_ = what;
    failed_ = true;
  }
  StepTime At() const { return {now_, WallTime(0)}; }

  void StartMaster() {
    core_ = std::make_unique<MasterCore>(options_, journal_.TakeState(), At());
    Sync();
  }
  void Sync() { ASSERT_TRUE(journal_.Write(core_->TakeMutations()).ok()); }
  /// True if the answer of the step may leave; false if the master died before the sync.
  bool Synced() {
    if (faults_ && Chance(2)) {
      core_.reset();
      ++probes_->crashes;
      return false;
    }
    Sync();
    if (core_->forget_state().version != 0) ++probes_->forgotten;
    return true;
  }

  void Step(bool faults) {
    faults_ = faults;
    now_ += std::chrono::milliseconds(1 + rng_.Below(faults ? 60 : 15));
    const uint64_t what = rng_.Below(100);
    if (core_ == nullptr) {
      if (!faults || Chance(30)) StartMaster();
    } else if (what < 10) {
      core_->Tick(At());
      Synced();
    }
    if (what < 45) {
      WorkerExchange(&workers_[rng_.Below(kWorkers)], rng_.Below(kWorkers));
    } else if (what < 70) {
      PushSome(&workers_[rng_.Below(kWorkers)]);
    } else if (what < 95) {
      ServerExchange(static_cast<uint32_t>(rng_.Below(kServers)));
    } else if (faults) {
      Fault();
    }
    if (faults && Chance(3) && !late_.empty()) Deliver(late_[rng_.Below(late_.size())]);
    Check();
  }

  void WorkerExchange(Worker* worker, uint64_t) {
    const size_t id = static_cast<size_t>(worker - workers_.data());
    if (!worker->up || worker->paused || core_ == nullptr) return;
    WorkerExchangeRequest request;
    request.worker = "worker-" + std::to_string(id);
    request.incarnation = worker->incarnation;
    request.sequence = ++worker->sequence;
    request.map_version = request.map_base = worker->map.version;
    request.newest_grant = worker->newest;
    request.want = worker->held.size() < 2 ? 1 : 0;
    for (const Held& held : worker->held) {
      request.held.push_back(
          {held.shard, held.token, held.restore, RunNumber(held.run), LeasePhase::kComputing, 1});
      if (Complete(held)) {
        DoneReport done{held.shard, held.token, held.restore, RunNumber(held.run), {}};
        done.metrics.records = kBatches;
        request.done.push_back(done);
      }
    }
    if (faults_ && Chance(10)) {  // lost, or delivered much later
      late_calls_.push_back(request);
      return;
    }
    if (faults_ && !late_calls_.empty() && Chance(10)) {
      (void)core_->ExchangeWorker(late_calls_[rng_.Below(late_calls_.size())], At());
      if (!Synced()) return;
    }
    const absl::StatusOr<WorkerExchangeReply> answer = core_->ExchangeWorker(request, At());
    const std::shared_ptr<const MapNews> news = core_->TellMap(request);
    if (!Synced() || (faults_ && Chance(10))) return;  // the answer is lost
    if (!answer.ok()) return;                          // superseded
    const WorkerExchangeReply& reply = *answer;
    if (news != nullptr) worker->map = testing::MapAfter(worker->map, *news);
    for (const DoneVerdict& verdict : reply.verdicts) testing::TakeVerdict(worker, verdict);
    for (LeaseToken token : reply.lost) {
      std::erase_if(worker->held, [&](const Held& held) { return held.token == token; });
    }
    for (const ShardGrant& grant : reply.grants) {
      worker->newest = std::max(worker->newest, grant.token);
      bool known = false;
      for (const Held& held : worker->held) known |= held.token == grant.token;
      if (!known) worker->held.push_back({grant.shard, grant.token, grant.restore_epoch, 0, {}});
    }
  }
  void PushSome(Worker* worker) {
    if (!worker->up || worker->paused || worker->held.empty()) return;
    Held& held = worker->held[rng_.Below(worker->held.size())];
    if (held.shard.dataset.value() == 1 || worker->map.restore_epoch < held.restore) return;
    bool stale = false;
    for (uint32_t b = 0; b < kBatches; ++b) {
      for (uint32_t p = 0; p < kPartitions; ++p) {
        if (!Touches(held.shard, b, p) || held.acked.contains({b, p}) || !Chance(60)) continue;
        const PartitionEntry& entry = worker->map.partitions[p];
        const Push push{entry.owner, held.shard, b, p, held.token, entry.epoch};
        if (faults_ && Chance(15)) late_.push_back(push);
        if (faults_ && Chance(10)) continue;
        if (!servers_[entry.owner.value()].up || servers_[entry.owner.value()].paused) continue;
        const Ack ack = Deliver(push);
        if (ack == Ack::kStale) stale = true;
        if (ack == Ack::kOk && !(faults_ && Chance(10))) held.acked.insert({b, p});
        if (ack == Ack::kWrongOwner) worker->map.version = MapVersion();
      }
    }
    if (stale) {
      const LeaseToken token = held.token;
      std::erase_if(worker->held, [&](const Held& one) { return one.token == token; });
    }
  }
  Ack Deliver(const Push& push) { return servers_[push.to.value()].Apply(push, probes_); }

  void ServerExchange(uint32_t id) {
    Server& server = servers_[id];
    if (!server.up || server.paused || core_ == nullptr || (faults_ && Chance(8))) return;
    if (!server.registered) {
      const auto reply = core_->RegisterServer(
          {NodeTable::ServerName(ServerId(id)), server.nonce, {{"unix:/x"}}}, At());
      if (!Synced() || (faults_ && Chance(10))) return;
      if (!reply.ok()) {  // superseded
        server = Server{};
        server.nonce = ++ids_;
        return;
      }
      server.incarnation = reply->incarnation;
      server.registered = true;
      return;
    }
    ServerExchangeRequest request;
    request.id = ServerId(id);
    request.incarnation = server.incarnation;
    request.sequence = ++server.sequence;
    for (const auto& [p, owned] : server.owned) {
      request.owned.push_back({PartitionId(p), owned.epoch, owned.accepted});
    }
    request.snapshots = server.reports;
    request.missing = server.missing;
    request.forget_version = server.forget_version;
    if (faults_ && Chance(10)) {
      late_server_calls_.push_back(request);
      return;
    }
    if (faults_ && !late_server_calls_.empty() && Chance(10)) {
      core_->ExchangeServer(late_server_calls_[rng_.Below(late_server_calls_.size())], At());
      if (!Synced()) return;
      CheckManifests();
    }
    const uint64_t accepted = core_->totals().snapshots_accepted;
    const ServerExchangeReply reply = core_->ExchangeServer(request, At());
    if (core_->totals().snapshots_accepted - accepted < request.snapshots.size()) {
      ++probes_->refused_snapshots;
    }
    if (!Synced() || (faults_ && Chance(10))) return;
    server.missing.clear();
    if (Chance(70)) server.reports.clear();
    CheckManifests();
    server.Obey(reply, &disk_, &rng_);
  }
  void Fault() {
    Worker& worker = workers_[rng_.Below(kWorkers)];
    const uint32_t id = static_cast<uint32_t>(rng_.Below(kServers));
    Server& server = servers_[id];
    switch (rng_.Below(8)) {
      case 0: {
        const uint64_t incarnation = ++ids_;
        worker = Worker{};
        worker.incarnation = incarnation;
        break;
      }
      case 1:
        worker.paused = !worker.paused;
        break;
      case 2:
        if (server.up) {
          server.up = false;
          server.owned.clear();
        } else {
          server = Server{};
          server.nonce = ++ids_;
        }
        break;
      case 3:
        server.paused = !server.paused;
        break;
      case 4:  // forgets a partition, as if its disk had failed
        if (!server.owned.empty() && Chance(50)) {
          server.missing.push_back(
              {PartitionId(server.owned.begin()->first), server.owned.begin()->second.epoch});
          server.owned.erase(server.owned.begin());
          ++probes_->missing;
        }
        break;
      case 5:
        if (core_ != nullptr) {
          core_.reset();
          ++probes_->crashes;
        }
        break;
      case 6:  // the supervisor reports a worker's death, true or late
        if (core_ != nullptr) {
          NodeReport report;
          report.node = "worker-0";
          report.role = NodeRole::kWorker;
          report.start = StartNumber(++ids_);
          report.what = NodeReport::What::kExited;
          report.signal = 9;
          core_->ReportNode(report, At());
          Synced();
        }
        break;
      default:  // everything dies: a new run
        if (Chance(10)) {
          options_.run_id += "+";
          for (Worker& one : workers_) {
            one = Worker{};
            one.incarnation = ++ids_;
          }
          for (Server& one : servers_) {
            one = Server{};
            one.nonce = ++ids_;
          }
          late_.clear();
          late_calls_.clear();
          late_server_calls_.clear();
          StartMaster();
        }
    }
  }
  void Heal() {
    faults_ = false;
    for (Worker& worker : workers_) worker.paused = false;
    for (Server& server : servers_) {
      server.paused = false;
      if (server.up) continue;
      server = Server{};
      server.nonce = ++ids_;
    }
    if (core_ == nullptr) StartMaster();
  }

  bool Serving(uint32_t p) const {
    const PartitionEntry& entry = core_->partitions().entry(PartitionId(p));
    const Server& server = servers_[entry.owner.value()];
    auto it = server.owned.find(p);
    return server.up && it != server.owned.end() && it->second.epoch == entry.epoch &&
           server.incarnation == entry.owner_incarnation;
  }
  bool AllServed() const {
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (!Serving(p)) return false;
    }
    return true;
  }
  const State& StateOf(uint32_t p) const {
    return servers_[core_->partitions().entry(PartitionId(p)).owner.value()].owned.at(p).state;
  }
  void Check() {
    if (core_ == nullptr) return;
    const JobTotals& totals = core_->totals();
    probes_->replayed = std::max(probes_->replayed, totals.replayed_shards);
    probes_->reverified = std::max(probes_->reverified, totals.reverified_runs);
    probes_->reasserted = std::max(probes_->reasserted, totals.reasserted_leases);
    probes_->expired = std::max(probes_->expired, totals.expired_leases);
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (!Serving(p)) continue;
      for (const auto& [key, count] : StateOf(p).rows) {
        if (count > 1) Fail("a part was applied twice: " + ToString(key.first));
      }
    }
    const uint64_t committed = journal_.state().epochs.empty() ? 0 : CommittedCount();
    if (committed < committed_) Fail("COMMITTED went back");
    committed_ = committed;
  }
  uint64_t CommittedCount() const {
    uint64_t count = 0;
    for (const auto& [key, record] : journal_.state().epochs) count += record.committed.count();
    return count;
  }
  /// The manifest's snapshots hold every COMMITTED shard exactly once.
  void CheckManifests() {
    for (const auto& [id, record] : journal_.state().partitions) {
      if (record.manifest.number == SnapshotNumber()) continue;
      const State& state = disk_.at(record.manifest.files.back().name);
      CheckState(state, id.value(), "the manifest's snapshot");
    }
  }
  void CheckState(const State& state, uint32_t p, const std::string& what) {
    for (const auto& [key, record] : journal_.state().epochs) {
      if (key.first.value() == 1) continue;
      for (uint64_t index = 0; index < kShards; ++index) {
        if (!record.committed.Contains(index)) continue;
        const ShardId shard{key.first, key.second, ShardIndex(index)};
        for (uint32_t b = 0; b < kBatches; ++b) {
          auto it = state.rows.find({shard, b});
          const int count = it == state.rows.end() ? 0 : it->second;
          if (count == (Touches(shard, b, p) ? 1 : 0)) continue;
          Fail(what + " of partition " + std::to_string(p) + " has shard " + ToString(shard) + " " +
               std::to_string(count) + " times");
        }
      }
    }
  }
  void CheckEnd() {
    if (failed_) return;
    if (CommittedCount() != kEpochs * (kShards + 1)) Fail("not everything is COMMITTED");
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (!Serving(p)) return Fail("a partition is not served at the end");
      CheckState(StateOf(p), p, "the end state");
    }
    for (uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
      for (uint32_t dataset = 0; dataset < 2; ++dataset) {
        const std::shared_ptr<const ShardMetrics> metrics =
            core_->ledger().Metrics(DatasetId(dataset), EpochIndex(epoch));
        const uint64_t expected = (dataset == 0 ? kShards : 1) * kBatches;
        if (metrics == nullptr || metrics->records != expected) Fail("metrics are not merged once");
      }
    }
  }

  Rng rng_;
  Probes* probes_;
  CoreOptions options_;
  testing::MemoryJournal journal_;
  std::unique_ptr<MasterCore> core_;
  std::array<Worker, kWorkers> workers_;
  std::array<Server, kServers> servers_;
  testing::SimDisk disk_;
  std::vector<Push> late_;
  std::vector<WorkerExchangeRequest> late_calls_;
  std::vector<ServerExchangeRequest> late_server_calls_;
  TimePoint now_{std::chrono::seconds(1)};
  uint64_t ids_ = 0, committed_ = 0;
  bool faults_ = true, failed_ = false;
  std::string failure_;
};

/// The first seed that fails, or 0.
uint64_t FirstFailure(uint64_t seeds, PlantedBugs bugs, Probes* probes, std::string* failure) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    World world(seed, bugs, probes);
    world.Run();
    if (world.failure().empty()) continue;
    *failure = world.failure();
    return seed;
  }
  return 0;
}

TEST(MasterCoreSim, NothingIsLostOrDoubled) {
  Probes probes;
  std::string failure;
  const uint64_t seed = FirstFailure(testing::Seeds(5'000), {}, &probes, &failure);
  EXPECT_EQ(seed, 0u) << "seed " << seed << ": " << failure;
  // The rare paths ran.
  EXPECT_GT(probes.replayed, 0u);
  EXPECT_GT(probes.reverified, 0u);
  EXPECT_GT(probes.reasserted, 0u);
  EXPECT_GT(probes.expired, 0u);
  EXPECT_GT(probes.skipped, 0u);
  EXPECT_GT(probes.stale, 0u);
  EXPECT_GT(probes.missing, 0u);
  EXPECT_GT(probes.refused_snapshots, 0u);
  EXPECT_GT(probes.forgotten, 0u);
  EXPECT_GT(probes.crashes, 0u);
}

#if MUSTER_WITH_FAILPOINTS  // no planted bugs without
TEST(MasterCoreSim, SeesTheMissingReverify) {
  Probes probes;
  std::string failure;
  EXPECT_GT(FirstFailure(2000, {.no_reverify = true}, &probes, &failure), 0u)
      << "the simulation is blind";
}
#endif

}  // namespace
}  // namespace muster
