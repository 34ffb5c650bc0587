#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "master/core/group_job/group_job.h"
#include "master/core/group_job/group_shards.h"
#include "master/core/job_life.h"
#include "master/core/nodes/drains.h"
#include "master/core/nodes/node_reports.h"
#include "master/core/servers/servers.h"
#include "master/core/servers/snapshots.h"
#include "master/core/streams/streams.h"
#include "master/core/table_registry.h"
#include "master/core/workers/dones.h"
#include "master/core/workers/failures.h"
#include "master/core/workers/leasing.h"
#include "master/core/workers/worker_sessions.h"

namespace muster::testing {

inline constexpr DatasetId kTrainSet{0}, kCheckSet{1};
inline const WorkerKey kWorker{"worker-0", 7};

inline ShardId TrainShard(uint64_t index) {
  return {kTrainSet, EpochIndex(0), ShardIndex(index)};
}

/// The parts of a master over one set of books, each to be called by itself; a clock by hand.
/// Master incarnation 2. A dataset to train, of 4 shards of 10 records and 2 minibatches, and one
/// of a single shard to evaluate; two partitions, one server, unless `options` is changed before
/// Start(). One worker process is known.
class PartsFixture {
 public:
  PartsFixture() {
    const auto plan = [](std::string name, DatasetMode mode, uint64_t shards) {
      DatasetPlan dataset{std::move(name), mode, 1, shards, shards * 10, 5, nullptr};
      dataset.size_of = [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; };
      return dataset;
    };
    options.datasets = {plan("train", DatasetMode::kTrain, 4),
                        plan("check", DatasetMode::kEvaluate, 1)};
    options.partitions = 2;
    options.servers = 1;
  }
  void Start() {
    parts.emplace(options, state, now);
    books().partitions.BeginRun(options.servers);
    parts->leasing.Join(kWorker, now);
  }

  StepTime At() const { return {now, WallTime(0)}; }
  void Pass(std::chrono::nanoseconds time) { now += time; }

  /// Grants so many shards to the worker, as for a process that holds `held` and has seen all.
  std::vector<ShardGrant> Grant(uint32_t count, const std::vector<ShardGrant>& held = {}) {
    std::vector<ShardGrant> grants = GrantUpTo(count, held);
    MUSTER_CHECK(grants.size() == count);
    return grants;
  }
  std::vector<ShardGrant> GrantUpTo(uint32_t count, const std::vector<ShardGrant>& held = {}) {
    WorkerExchangeRequest request = Holding(held);
    request.want = count;
    WorkerExchangeReply reply;
    leasing().Grant(request, kWorker, {count, true}, At(), &reply);
    return reply.grants;
  }
  static WorkerExchangeRequest Holding(const std::vector<ShardGrant>& grants) {
    WorkerExchangeRequest request;
    request.worker = kWorker.name;
    request.incarnation = kWorker.incarnation;
    for (const ShardGrant& grant : grants) {
      request.held.push_back(
          {grant.shard, grant.token, grant.restore_epoch, {}, LeasePhase::kComputing, 1});
      request.newest_grant = std::max(request.newest_grant, grant.token);
    }
    return request;
  }
  static DoneReport DoneOf(const ShardGrant& grant) {
    DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
    done.metrics.records = 10;
    return done;
  }
  /// The worker trains the next shard; it is DONE.
  ShardGrant TrainOne() {
    const ShardGrant grant = Grant(1).at(0);
    MUSTER_CHECK(dones().Take(DoneOf(grant), kWorker, At()).code == DoneCode::kAccepted);
    return grant;
  }
  /// The process of server 0 with this nonce.
  ServerIncarnation Register(uint64_t nonce) {
    auto reply = servers().Register({"ps-0", nonce, {{"unix:/x"}}, {}}, At());
    MUSTER_CHECK(reply.ok());
    return reply->incarnation;
  }
  /// A call of server 0 that owns all that it is to own.
  ServerExchangeRequest ServerCall(ServerIncarnation incarnation, uint64_t sequence) {
    ServerExchangeRequest request;
    request.id = ServerId(0);
    request.incarnation = incarnation;
    request.sequence = sequence;
    for (uint32_t id = 0; id < options.partitions; ++id) {
      request.owned.push_back(
          {PartitionId(id), books().partitions.entry(PartitionId(id)).epoch, {}});
    }
    return request;
  }
  /// The snapshots that were asked for, as their server has written them.
  static std::vector<SnapshotReport> Written(const std::vector<SnapshotCommand>& commands) {
    std::vector<SnapshotReport> reports;
    for (const SnapshotCommand& command : commands) {
      const std::string name = ToString(command.partition) + "-" + ToString(command.number);
      reports.push_back({command.partition,
                         command.epoch,
                         {command.number, command.cut, {{name, 1, command.number}}}});
    }
    return reports;
  }
  /// The texts of all events of a kind, with who they are of.
  std::vector<std::string> Events(const std::string& kind) {
    std::vector<std::string> found;
    for (const auto& [number, event] : books().events().events()) {
      if (event.kind == kind) found.push_back(event.node + ": " + event.text);
    }
    return found;
  }

  Books& books() { return parts->books; }
  Failures& failures() { return parts->failures; }
  Leasing& leasing() { return parts->leasing; }
  Dones& dones() { return parts->dones; }
  JobLife& life() { return parts->life; }
  Snapshots& snapshots() { return parts->snapshots; }
  GroupShards& group_shards() { return parts->group_shards; }
  Drains& drains() { return parts->drains; }
  Streams& streams() { return parts->streams; }
  WorkerSessions& sessions() { return parts->sessions; }
  Servers& servers() { return parts->servers; }
  NodeReports& reports() { return parts->reports; }

  CoreOptions options;
  /// The journal's contents.
  DurableState state;
  TimePoint now{std::chrono::seconds(100)};

 private:
  struct Parts {
    Parts(const CoreOptions& options, DurableState state, TimePoint now)
        : books(options, MasterIncarnation(2), &state, now),
          failures(&books, &books.ledger),
          leasing(&books, &books.ledger, &books.totals, &failures, {}),
          dones(&books, &books.ledger, &books.totals, &leasing),
          epoch_ends(&books, &books.ledger.queue(), state.kept, {}),
          life(&books, &leasing, &epoch_ends),
          snapshots(&books, &books.ledger, &books.partitions, &books.nodes, &books.totals, &leasing,
                    &epoch_ends, &life),
          group_shards(&books, &books.ledger, &books.totals, &failures, &leasing, &dones, &life,
                       &snapshots),
          group(&books, &group_shards, &life, state.group, now),
          drains(&books, &books.nodes, &leasing, &life, &group),
          streams(&books, &books.ledger, &failures, &leasing, &life),
          sessions(&books, &books.nodes, &books.totals, &leasing, &streams),
          tables({}),
          servers(&books, &books.partitions, &books.nodes, &leasing, &life, &snapshots, &drains,
                  &tables, ServerIncarnation(40)),
          reports(&books, &books.nodes, &failures, &leasing, &life, &drains, &sessions, &group) {}
    Books books;
    Failures failures;
    Leasing leasing;
    Dones dones;
    EpochEnds epoch_ends;
    JobLife life;
    Snapshots snapshots;
    GroupShards group_shards;
    GroupJob group;
    Drains drains;
    Streams streams;
    WorkerSessions sessions;
    TableRegistry tables;
    Servers servers;
    NodeReports reports;
  };
  std::optional<Parts> parts;
};

}  // namespace muster::testing
