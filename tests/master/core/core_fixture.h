#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "master/core/master_core.h"
#include "tests/support/memory_journal.h"

namespace muster::testing {

inline DatasetPlan PlanFor(const std::string& name, DatasetMode mode, uint32_t epochs,
                           uint64_t shards) {
  DatasetPlan plan{name, mode, epochs, shards, shards * 10, 5, nullptr};
  plan.size_of = [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; };
  return plan;
}

/// A MasterCore with a journal in memory and a clock by hand. One dataset "train" of 4 shards of 10
/// records and 2 minibatches, two partitions, one server unless `options` is changed before Start.
class CoreFixture {
 public:
  CoreFixture() {
    options.datasets = {PlanFor("train", DatasetMode::kTrain, 1, 4)};
    options.partitions = 2;
    options.servers = 1;
    options.run_id = "run-1";
  }
  void Start() {
    core = std::make_unique<MasterCore>(options, journal.TakeState(), At());
    Sync();
  }
  /// kill -9 and a restart: what was not synced is gone.
  void Restart() { Start(); }
  void Sync() { MUSTER_CHECK(journal.Write(core->TakeMutations()).ok()); }
  StepTime At() const { return {now, WallTime(0)}; }
  void Advance(std::chrono::milliseconds by) {
    constexpr std::chrono::milliseconds kTick{500};
    for (; by > kTick; by -= kTick) StandStill(kTick);
    StandStill(by);
  }
  /// One tick after `gap`: more than a second, and the master takes it for its own pause.
  void StandStill(std::chrono::milliseconds gap) {
    now += gap;
    core->Tick(At());
    Sync();
  }

  /// A worker process begins. `start`: as in MasterCore::HelloWorker.
  void Hello(const std::string& name, uint64_t incarnation, uint64_t start = 0) {
    const absl::Status begun = core->HelloWorker({name, incarnation}, StartNumber(start), At());
    MUSTER_CHECK_MSG(begun.ok(), begun.ToString());
    Sync();
  }
  WorkerExchangeRequest Request(const std::string& name = "worker-0", uint64_t incarnation = 7) {
    WorkerExchangeRequest request;
    request.worker = name;
    request.incarnation = incarnation;
    request.sequence = ++sequence;
    return request;
  }
  WorkerExchangeReply Exchange(const WorkerExchangeRequest& request) {
    absl::StatusOr<WorkerExchangeReply> reply = core->ExchangeWorker(request, At());
    MUSTER_CHECK_MSG(reply.ok(), reply.status().ToString());
    if (const std::shared_ptr<const MapNews> news = core->TellMap(request)) {
      reply->map = news->as_reply().map;
      reply->map_changes = news->as_reply().map_changes;
    }
    Sync();
    return *std::move(reply);
  }
  /// Asks for `want` shards, holding what is given.
  WorkerExchangeReply Want(uint32_t want, const std::vector<ShardGrant>& holding = {}) {
    WorkerExchangeRequest request = Request();
    request.want = want;
    Hold(holding, &request);
    return Exchange(request);
  }
  static void Hold(const std::vector<ShardGrant>& grants, WorkerExchangeRequest* request) {
    for (const ShardGrant& grant : grants) {
      request->held.push_back(
          {grant.shard, grant.token, grant.restore_epoch, {}, LeasePhase::kComputing, 1});
      request->newest_grant = std::max(request->newest_grant, grant.token);
    }
  }
  /// Reports `grants` done; returns the code of each.
  std::vector<DoneCode> Done(const std::vector<ShardGrant>& grants) {
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    for (const ShardGrant& grant : grants) {
      DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
      done.metrics.records = 10;
      request.done.push_back(done);
    }
    std::vector<DoneCode> codes;
    for (const DoneVerdict& verdict : Exchange(request).verdicts) codes.push_back(verdict.code);
    return codes;
  }

  /// A worker takes a shard and hands it back in its second minibatch.
  void HandBackOne(HandBack why = HandBack::kByTrainer) {
    const std::vector<ShardGrant> grants = Want(1).grants;
    MUSTER_CHECK(grants.size() == 1);
    WorkerExchangeRequest request = Request();
    request.newest_grant = grants[0].token;
    const std::string shortage = why == HandBack::kShortage ? "too many open files" : "";
    request.returned.push_back({grants[0].shard, grants[0].token, false, shortage, false, why, 2});
    Exchange(request);
  }

  void Register(uint64_t nonce, uint32_t id = 0) {
    auto reply =
        core->RegisterServer({NodeTable::ServerName(ServerId(id)), nonce, {{"unix:/x"}}}, At());
    MUSTER_CHECK(reply.ok());
    server = reply->incarnation;
    server_sequence = 0;
    Sync();
  }
  ServerExchangeRequest ServerRequest(uint32_t id = 0) {
    ServerExchangeRequest request;
    request.id = ServerId(id);
    request.incarnation = server;
    request.sequence = ++server_sequence;
    for (uint32_t p = 0; p < options.partitions; ++p) {
      if (core->partitions().entry(PartitionId(p)).owner != ServerId(id)) continue;
      request.owned.push_back({PartitionId(p), core->partitions().entry(PartitionId(p)).epoch,
                               core->partitions().manifest(PartitionId(p)).number});
    }
    return request;
  }
  ServerExchangeReply ExchangeServer(const ServerExchangeRequest& request) {
    ServerExchangeReply reply = core->ExchangeServer(request, At());
    Sync();
    return reply;
  }
  /// Writes every snapshot that is asked for; returns how many there were.
  size_t Snapshot() {
    const ServerExchangeReply reply = ExchangeServer(ServerRequest());
    ServerExchangeRequest request = ServerRequest();
    for (const SnapshotCommand& command : reply.snapshots) {
      request.snapshots.push_back(
          {command.partition,
           command.epoch,
           {command.number, command.cut, {{"f" + ToString(command.number), 1, command.number}}}});
    }
    ExchangeServer(request);
    return reply.snapshots.size();
  }
  size_t EventCount(const std::string& kind) const {
    size_t count = 0;
    for (const auto& [number, event] : core->events().events()) count += event.kind == kind;
    return count;
  }
  bool HasEvent(const std::string& kind) const { return !EventOf(kind).empty(); }
  /// The newest event of this kind: who and what; empty: there is none.
  std::string EventOf(const std::string& kind) const {
    std::string found;
    for (const auto& [sequence_number, event] : core->events().events()) {
      if (event.kind == kind) found = event.node + ": " + event.text;
    }
    return found;
  }

  CoreOptions options;
  MemoryJournal journal;
  std::unique_ptr<MasterCore> core;
  TimePoint now{std::chrono::seconds(100)};
  uint64_t sequence = 0, server_sequence = 0;
  ServerIncarnation server;
};

}  // namespace muster::testing
