#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"
#include "worker_sdk/core/worker_core.h"

/// Worker cores against a small master and small servers that keep docs/protocol.md, on a random
/// schedule: lost, doubled and late messages, servers that come back from a snapshot, expired
/// leases, master restarts. At the end every part must be in the rows exactly once.
namespace muster::sdk {
namespace {

using wire::PartCode;

constexpr uint64_t kShards = 6;
constexpr uint32_t kMinibatches = 3;
constexpr int kWorkers = 2;

bool Touches(uint64_t shard, uint32_t minibatch, uint32_t partition) {
  return (shard + 2 * minibatch + partition) % 3 != 0;
}

using PartName = std::pair<uint64_t, uint32_t>;  // shard, minibatch
struct PartitionState {
  std::map<PartName, int> rows;  // how often applied
  std::set<PartName> window;
};

struct Probes {
  int asked = 0, partial = 0;
  int reverified = 0, replayed = 0, skipped = 0, reasserted = 0, lost = 0, refused = 0;
};

class World {
 public:
  World(uint64_t seed, bool plant_no_reverify) : rng_(seed), no_reverify_(plant_no_reverify) {
    map_ = MapOf(1, 1);
    for (int w = 0; w < kWorkers; ++w) NewWorker(w);
  }

  /// Empty when every part is in the rows exactly once.
  std::string Run() {
    for (int i = 0; i < 4000; ++i) Step(/*faults=*/true);
    for (int i = 0; i < 60000 && !AllCommitted(); ++i) Step(false);
    if (!AllCommitted()) return "the job does not end";
    for (uint32_t p = 0; p < kPartitions; ++p) {
      for (uint64_t s = 0; s < kShards; ++s) {
        for (uint32_t b = 0; b < kMinibatches; ++b) {
          int expected = Touches(s, b, p) ? 1 : 0;
          if (live_[p].rows[{s, b}] != expected) {
            return "partition " + std::to_string(p) + " has shard " + std::to_string(s) +
                   " minibatch " + std::to_string(b) + " " + std::to_string(live_[p].rows[{s, b}]) +
                   " times";
          }
        }
      }
    }
    return "";
  }
  const Probes& probes() const { return probes_; }

 private:
  struct Lease {
    LeaseToken token;
    int worker;
    RestoreEpoch restore;
  };
  struct Done {
    uint64_t sequence = 0;
    LeaseToken token;
    bool committed = false;
  };
  struct Message {  // a request on its way to a server, or its answer on its way back
    int worker;
    uint64_t incarnation;
    SendRequest request;
    std::optional<std::vector<wire::PartReply>> answer;
  };
  struct Call {  // an exchange in progress
    WorkerExchangeRequest request;
    std::optional<WorkerExchangeReply> reply;
  };
  struct Worker {
    std::unique_ptr<WorkerCore> core;
    uint64_t incarnation = 0;
    std::optional<ShardRun> shard;
    uint32_t next = 0;
    std::optional<Call> call;
  };

  bool Chance(uint64_t percent) { return rng_.Below(100) < percent; }
  void NewWorker(int w) {
    Worker fresh;
    fresh.incarnation = ++incarnations_;
    fresh.core = std::make_unique<WorkerCore>(WorkerCore::Options{
        "worker-" + std::to_string(w), fresh.incarnation, 1, std::chrono::milliseconds(500)});
    workers_[w] = std::move(fresh);
  }

  void Step(bool faults) {
    now_ += std::chrono::milliseconds(rng_.Below(40));
    int w = static_cast<int>(rng_.Below(kWorkers));
    switch (rng_.Below(faults ? 11 : 9)) {
      case 0:
      case 1:
      case 2:
        return Deliver(faults);
      case 3:
      case 4:
        return Train(w);
      case 5:
      case 6:
        return Exchange(w, faults);
      case 7:
        return Snapshot();
      case 8:
        for (SendRequest& request : workers_[w].core->Flush(now_)) {
          network_.push_back({w, workers_[w].incarnation, std::move(request), std::nullopt});
        }
        return;
      default:
        return Fault(w);
    }
  }

  void Train(int w) {
    Worker& worker = workers_[w];
    WorkerCore& core = *worker.core;
    if (!worker.shard) {
      worker.shard = core.TakeShard();
      worker.next = 0;
      if (worker.shard && !worker.shard->minibatches.empty()) ++probes_.partial;
      return;
    }
    LeaseToken token = worker.shard->grant.token;
    RunNumber run = worker.shard->run;
    if (!core.Holds(token, run)) {
      worker.shard.reset();
      return;
    }
    if (worker.next < kMinibatches) {
      if (!worker.shard->Has(MinibatchIndex(worker.next))) return void(++worker.next);
      uint64_t shard = worker.shard->grant.shard.index.value();
      uint32_t minibatch = worker.next++;
      core.StartMinibatch(token, run);
      core.CommitMinibatch(token, run, MinibatchIndex(minibatch),
                           BatchOf([&](uint32_t p) { return Touches(shard, minibatch, p); }), now_);
      return;
    }
    core.CompleteShard(token, run, {});
    worker.shard.reset();
  }

  void Deliver(bool faults) {
    if (network_.empty()) return;
    size_t i = rng_.Below(network_.size());
    Message message = network_[i];
    if (!faults || !Chance(10)) {  // else it stays in the network and comes again
      network_[i] = network_.back();
      network_.pop_back();
    }
    bool lost = faults && Chance(10);
    Worker& worker = workers_[message.worker];
    if (message.answer || lost) {
      if (worker.incarnation != message.incarnation) return;
      if (lost) {
        worker.core->OnUnanswered(message.request.id, now_);
      } else {
        worker.core->OnReply(message.request, *message.answer, {}, "", now_);
      }
      return;
    }
    message.answer.emplace();
    for (const SendRequest::Item& item : message.request.items) {
      uint32_t p = message.request.batch->plan.parts[item.part].partition.value();
      const bool question = message.request.batch->plan.parts[item.part].group_count == 0;
      message.answer->push_back({p, Apply(p, item.epoch, *message.request.push, question), false});
    }
    network_.push_back(std::move(message));
  }

  PartCode Apply(uint32_t p, OwnerEpoch epoch, const PushIdentity& push, bool question) {
    if (epoch != map_.partitions[p].epoch) return PartCode::kWrongOwner;
    if (Chance(5)) return PartCode::kRetry;
    PartName name{push.shard.index.value(), push.minibatch.value()};
    if (question) {
      ++probes_.asked;
      return live_[p].window.contains(name) ? PartCode::kOk : PartCode::kMissing;
    }
    if (!live_[p].window.insert(name).second) {
      ++probes_.skipped;
      return PartCode::kOk;
    }
    ++live_[p].rows[name];
    return PartCode::kOk;
  }

  void Exchange(int w, bool faults) {
    Worker& worker = workers_[w];
    if (!worker.call) {
      if (worker.core->NextExchange(now_) > now_) return;
      worker.call = Call{worker.core->BeginExchange({}, now_), std::nullopt};
      return;
    }
    if (!worker.call->reply) {
      if (faults && Chance(10)) return EndCall(&worker, false);
      worker.call->reply = Serve(w, worker.call->request);
      return;
    }
    EndCall(&worker, !faults || Chance(90));
  }
  void EndCall(Worker* worker, bool answered) {
    if (answered) {
      worker->core->OnExchangeReply(*worker->call->reply, now_);
    } else {
      worker->core->OnExchangeFailed(now_);
    }
    worker->call.reset();
  }

  WorkerExchangeReply Serve(int w, const WorkerExchangeRequest& request) {
    WorkerExchangeReply reply;
    reply.master_incarnation = master_;
    for (const HeldLease& held : request.held) {
      uint64_t s = held.shard.index.value();
      bool leased = leases_.contains(s) && leases_[s].token == held.token;
      bool known_done = done_[s].sequence > 0 && done_[s].token == held.token;
      if (leased || known_done) continue;
      if (grace_ && done_[s].sequence == 0 && !leases_.contains(s)) {
        leases_[s] = {held.token, w, held.restore_epoch};
        ++probes_.reasserted;
        continue;
      }
      reply.lost.push_back(held.token);
      ++probes_.lost;
    }
    for (const DoneReport& done : request.done) reply.verdicts.push_back(Judge(done));
    for (const ReturnedLease& returned : request.returned) {
      uint64_t s = returned.shard.index.value();
      if (leases_.contains(s) && leases_[s].token == returned.token) leases_.erase(s);
    }
    // A lease that it should hold but does not list has ended: it was dropped, or the grant was
    // lost.
    std::erase_if(leases_, [&](const auto& lease) {
      auto listed = [&](const HeldLease& held) { return held.token == lease.second.token; };
      return lease.second.worker == w &&
             std::none_of(request.held.begin(), request.held.end(), listed);
    });
    for (uint64_t s = 0; s < kShards && reply.grants.size() < request.want && !grace_; ++s) {
      if (done_[s].sequence > 0 || leases_.contains(s)) continue;
      LeaseToken token(master_, ++tokens_);
      leases_[s] = {token, w, map_.restore_epoch};
      ShardGrant grant{{DatasetId(0), EpochIndex(0), ShardIndex(s)}, token, map_.restore_epoch, {}};
      reply.grants.push_back(grant);
    }
    if (request.map_version < map_.version) reply.map = map_;
    return reply;
  }

  DoneVerdict Judge(const DoneReport& report) {
    uint64_t s = report.shard.index.value();
    DoneVerdict verdict{report.shard, report.token, report.run, DoneCode::kAccepted,
                        map_.restore_epoch};
    if (done_[s].sequence > 0 && done_[s].token == report.token) return verdict;
    if (!leases_.contains(s) || leases_[s].token != report.token) {
      verdict.code = DoneCode::kRefused;
      ++probes_.refused;
    } else if (report.restore_epoch < map_.restore_epoch && !no_reverify_) {
      verdict.code = DoneCode::kReverify;
      leases_[s].restore = map_.restore_epoch;
      ++probes_.reverified;
    } else {
      done_[s] = {++done_sequence_, report.token, false};
      leases_.erase(s);
    }
    return verdict;
  }

  void Snapshot() {
    uint32_t p = static_cast<uint32_t>(rng_.Below(kPartitions));
    manifest_[p] = live_[p];
    cut_[p] = done_sequence_;
    uint64_t newest = *std::min_element(cut_.begin(), cut_.end());
    for (Done& done : done_) done.committed |= done.sequence > 0 && done.sequence <= newest;
  }

  void Fault(int w) {
    switch (rng_.Below(40)) {
      case 0:
      case 1:
        return RestartServer(static_cast<uint32_t>(rng_.Below(kServers)));
      case 2:
        for (auto it = leases_.begin(); it != leases_.end(); ++it) {
          if (Chance(30)) return void(leases_.erase(it));
        }
        return;
      case 3:
        return NewWorker(w);
      case 4:  // the master restarts, and its grace period begins
        master_ = master_.Next();
        leases_.clear();
        grace_ = true;
        return;
      case 5:
      case 6:
        grace_ = false;
        return;
      default:
        return;
    }
  }

  void RestartServer(uint32_t server) {
    map_.version = map_.version.Next();
    map_.restore_epoch = map_.restore_epoch.Next();
    for (uint32_t p = 0; p < kPartitions; ++p) {
      PartitionEntry& entry = map_.partitions[p];
      if (entry.owner.value() != server) continue;
      entry.owner_incarnation = entry.owner_incarnation.Next();
      entry.epoch = entry.epoch.Next();
      if (!no_reverify_) entry.restored_at = map_.restore_epoch;
      live_[p] = manifest_[p];
      for (Done& done : done_) {
        if (done.sequence > cut_[p] && !done.committed) {
          done = {};
          ++probes_.replayed;
        }
      }
    }
  }

  bool AllCommitted() {
    grace_ = false;
    for (const Done& done : done_) {
      if (!done.committed) return false;
    }
    return true;
  }

  Rng rng_;
  bool no_reverify_;
  TimePoint now_{std::chrono::seconds(100)};
  PartitionMap map_;
  MasterIncarnation master_{1};
  bool grace_ = false;
  uint64_t tokens_ = 0, done_sequence_ = 0, incarnations_ = 0;
  std::map<uint64_t, Lease> leases_;
  std::array<Done, kShards> done_{};
  std::array<PartitionState, kPartitions> live_, manifest_;
  std::array<uint64_t, kPartitions> cut_{};
  std::array<Worker, kWorkers> workers_;
  std::vector<Message> network_;
  Probes probes_;
};

TEST(WorkerCoreRandomTest, EveryPartIsInTheRowsExactlyOnce) {
  Probes total;
  const uint64_t seeds = muster::testing::Seeds(40);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    World world(seed, false);
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    const Probes& probes = world.probes();
    total.asked += probes.asked;
    total.partial += probes.partial;
    total.reverified += probes.reverified;
    total.replayed += probes.replayed;
    total.skipped += probes.skipped;
    total.reasserted += probes.reasserted;
    total.lost += probes.lost;
    total.refused += probes.refused;
  }
  // The schedules reached what they are for.
  EXPECT_GT(total.asked, 0);
  EXPECT_GT(total.partial, 0);
  EXPECT_GT(total.reverified, 0);
  EXPECT_GT(total.replayed, 0);
  EXPECT_GT(total.skipped, 0);
  EXPECT_GT(total.reasserted, 0);
  EXPECT_GT(total.lost, 0);
}

TEST(WorkerCoreRandomTest, AMasterThatKeepsRestoresToItselfIsFoundOut) {
  bool found = false;
  for (uint64_t seed = 1; seed <= 40 && !found; ++seed) {
    found = !World(seed, true).Run().empty();
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace muster::sdk
