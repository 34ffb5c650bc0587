#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "proto/messages/control.h"

/// The actors around the real core in master_core_sim_test.cc: servers and workers that follow
/// docs/protocol.md and count the parts that they apply.
namespace muster::testing {

/// How often the rare paths ran.
struct Probes {
  uint64_t replayed = 0, reverified = 0, reasserted = 0, expired = 0, skipped = 0, stale = 0;
  uint64_t missing = 0, refused_snapshots = 0, forgotten = 0, crashes = 0;
};

inline constexpr uint32_t kPartitions = 3, kBatches = 2;
using PartKey = std::pair<ShardId, uint32_t>;  // shard, minibatch

/// Which partitions a minibatch touches: a pure function of its id.
inline bool Touches(const ShardId& shard, uint32_t batch, uint32_t partition) {
  return (shard.index.value() + shard.epoch.value() + 2 * batch + partition) % 4 != 3;
}

/// A partition: rows hold how often each part was applied.
struct State {
  std::map<PartKey, int> rows;
  std::map<ShardId, std::set<uint32_t>> window;
  LeaseToken floor;
};
struct Owned {
  OwnerEpoch epoch;
  State state;
  SnapshotNumber accepted;
};
/// Snapshots by file name.
using SimDisk = std::map<std::string, State>;
struct Push {
  ServerId to;
  ShardId shard;
  uint32_t batch = 0, partition = 0;
  LeaseToken token;
  OwnerEpoch epoch;
};
enum class Ack { kOk, kWrongOwner, kStale };

/// A server process: obeys the master as docs/protocol.md section 5 asks.
struct SimServer {
  bool up = true, paused = false, registered = false;
  uint64_t nonce = 0, sequence = 0, forget_version = 0;
  MasterIncarnation master;
  ServerIncarnation incarnation;
  std::map<uint32_t, Owned> owned;
  std::map<uint32_t, OwnerEpoch> seen;
  std::vector<SnapshotReport> reports;
  std::vector<MissingReport> missing;

  Ack Apply(const Push& push, Probes* probes) {
    auto it = owned.find(push.partition);
    if (!up || it == owned.end() || it->second.epoch != push.epoch) {
      return Ack::kWrongOwner;
    }
    State& state = it->second.state;
    if (push.token < state.floor) {
      ++probes->stale;
      return Ack::kStale;
    }
    if (!state.window[push.shard].insert(push.batch).second) {
      ++probes->skipped;
      return Ack::kOk;
    }
    ++state.rows[{push.shard, push.batch}];
    return Ack::kOk;
  }

  void Obey(const ServerExchangeReply& reply, SimDisk* disk, Rng* rng) {
    if (reply.unknown_incarnation) {
      registered = false;
      return;
    }
    for (const OwnCommand& own : reply.owns) {
      const uint32_t p = own.partition.value();
      if (own.epoch < seen[p]) continue;
      seen[p] = own.epoch;
      auto it = owned.find(p);
      if (it != owned.end() && it->second.epoch >= own.epoch) continue;
      if (it != owned.end() && it->second.epoch >= own.since) {
        it->second.epoch = own.epoch;
      } else if (own.restored) {
        State state;
        if (own.manifest.number != SnapshotNumber()) {
          state = disk->at(own.manifest.files.back().name);
        }
        owned[p] = {own.epoch, state, own.manifest.number};
      } else {
        missing.push_back({own.partition, own.epoch});
      }
    }
    for (const SnapshotCommand& command : reply.snapshots) {
      auto it = owned.find(command.partition.value());
      if (it == owned.end() || it->second.epoch != command.epoch || rng->Below(100) < 30) continue;
      const std::string name = ToString(command.partition) + "/" + ToString(command.epoch) + "/" +
                               ToString(command.number);
      disk->try_emplace(name, it->second.state);
      reports.push_back({command.partition,
                         command.epoch,
                         {command.number, command.cut, {{name, 1, command.number}}}});
    }
    for (const AcceptedSnapshot& accepted : reply.accepted) {
      auto it = owned.find(accepted.partition.value());
      if (it != owned.end()) it->second.accepted = accepted.number;
    }
    if (!reply.forget.has_value()) return;
    forget_version = reply.forget->version;
    for (auto& [p, owned] : owned) {
      owned.state.floor = std::max(owned.state.floor, reply.forget->floor);
      for (const auto& [epoch, shards] : reply.forget->shards) {
        std::erase_if(owned.state.window, [&](const auto& entry) {
          return entry.first.dataset == epoch.first && entry.first.epoch == epoch.second &&
                 shards.Contains(entry.first.index.value());
        });
      }
    }
  }
};

/// A lease as its worker sees it.
struct Held {
  ShardId shard;
  LeaseToken token;
  RestoreEpoch restore;
  uint32_t run = 0;
  std::set<std::pair<uint32_t, uint32_t>> acked;
};
/// A worker process.
struct SimWorker {
  bool up = true, paused = false;
  uint64_t incarnation = 0, sequence = 0;
  LeaseToken newest;
  PartitionMap map;
  std::vector<Held> held;
};

inline PartitionMap MapAfter(const PartitionMap& map, const MapNews& news) {
  const WorkerExchangeReply& said = news.as_reply();
  if (said.map.has_value()) return *said.map;
  MUSTER_CHECK(said.map_changes->base <= map.version);
  return WithChanges(map, *said.map_changes).value();
}

inline void TakeVerdict(SimWorker* worker, const DoneVerdict& verdict) {
  for (size_t i = 0; i < worker->held.size(); ++i) {
    Held& held = worker->held[i];
    if (held.token != verdict.token || held.run != verdict.run.value()) continue;
    if (verdict.code == DoneCode::kReverify) {
      held.restore = verdict.restore_epoch;
      held.acked.clear();
      ++held.run;
    } else {
      worker->held.erase(worker->held.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return;
  }
}

inline bool Complete(const Held& held) {
  if (held.shard.dataset.value() == 1) return true;
  for (uint32_t b = 0; b < kBatches; ++b) {
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (Touches(held.shard, b, p) && !held.acked.contains({b, p})) return false;
    }
  }
  return true;
}

}  // namespace muster::testing
