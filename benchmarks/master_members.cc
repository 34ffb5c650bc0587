#include "benchmarks/master_members.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/version.h"
#include "benchmarks/master_job.h"

namespace muster {

SimulatedWorker::SimulatedWorker(uint32_t number)
    : name_("worker-" + std::to_string(number)), incarnation_(number + 1) {}

WorkerExchangeRequest SimulatedWorker::Request(const Wish& wish) {
  WorkerExchangeRequest request;
  request.worker = name_;
  request.incarnation = incarnation_;
  request.sequence = ++sequence_;
  request.map_version = request.map_base = map_version_;
  request.newest_grant = newest_grant_;
  request.want = wish.want;
  ++said_;
  for (HeldLease& held : held_) {
    ++held.minibatches_started;
    request.held.push_back(held);
    if (!wish.finish) continue;
    DoneReport done{held.shard, held.token, held.restore_epoch, held.run, {}};
    done.metrics.records = kMasterJobRecords;
    done.metrics.means["loss"] = {0.5, static_cast<double>(kMasterJobRecords)};
    request.done.push_back(std::move(done));
  }
  request.times = {.total_us = said_ * 500'000,
                   .wait_pull_us = said_ * 100'000,
                   .compute_us = said_ * 400'000,
                   .minibatches_begun = said_ * 10,
                   .minibatches_finished = said_ * 10,
                   .records_trained = said_ * 2560};
  if (!wish.peers) return request;
  for (const auto& [server, incarnation] : servers_) {
    request.peers.push_back(
        {server, incarnation, said_ * 10, said_ * 2'000, said_ * 10, said_ * 3'000});
  }
  return request;
}

void SimulatedWorker::Take(const WorkerExchangeReply& reply, const MapNews* map) {
  if (map != nullptr) TakeMap(map->as_reply());
  MUSTER_CHECK(reply.directive == JobDirective::kWork);
  const auto drop = [this](LeaseToken token) {
    std::erase_if(held_, [token](const HeldLease& held) { return held.token == token; });
  };
  for (const LeaseToken token : reply.lost) drop(token);
  for (const DoneVerdict& verdict : reply.verdicts) {
    if (verdict.code != DoneCode::kReverify) {
      drop(verdict.token);
      continue;
    }
    for (HeldLease& held : held_) {
      if (held.token != verdict.token) continue;
      held.restore_epoch = verdict.restore_epoch;
      held.run = held.run.Next();
    }
  }
  for (const ShardGrant& grant : reply.grants) {
    held_.push_back({grant.shard, grant.token, grant.restore_epoch, {}, LeasePhase::kComputing, 1});
    newest_grant_ = std::max(newest_grant_, grant.token);
  }
}

void SimulatedWorker::TakeMap(const WorkerExchangeReply& news) {
  if (news.map && news.map->version > map_version_) {
    map_version_ = news.map->version;
    servers_.clear();
    for (const ServerEndpoint& server : news.map->servers) servers_[server.id] = server.incarnation;
  }
  if (news.map_changes && news.map_changes->version > map_version_) {
    MUSTER_CHECK(news.map_changes->base <= map_version_);
    map_version_ = news.map_changes->version;
    for (const ServerEndpoint& server : news.map_changes->servers) {
      servers_[server.id] = server.incarnation;
    }
  }
}

void SimulatedServer::StartAgain() {
  ++start_;
  incarnation_ = ServerIncarnation();
  sequence_ = 0;
  forget_version_ = 0;
  settled_ = false;
  owned_.clear();
  snapshots_.clear();
}

RegisterServerRequest SimulatedServer::Registration() const {
  const std::string number = std::to_string(id_.value());
  const std::vector<std::string> lane = {
      "unix:/run/muster/bench/ps-" + number + "-" + std::to_string(start_) + "/lane-0",
      "127.0.0.1:" + std::to_string(33'000 + id_.value() + start_)};
  return {name(), start_, {lane}, StartNumber(start_), kVersion};
}

void SimulatedServer::Take(const RegisterServerReply& reply) {
  incarnation_ = reply.incarnation;
}

ServerExchangeRequest SimulatedServer::Request(bool traffic) {
  ServerExchangeRequest request;
  request.id = id_;
  request.incarnation = incarnation_;
  request.sequence = ++sequence_;
  request.owned = owned_;
  request.snapshots = snapshots_;
  request.forget_version = forget_version_;
  request.counters = {
      .pulls = sequence_ * 100, .pulled_rows = sequence_ * 100'000, .pushes = sequence_ * 100};
  if (!traffic) return request;
  for (const OwnedPartition& one : owned_) {
    request.traffic.push_back({one.partition, sequence_ * 10, sequence_ * 10, sequence_ * 10'000,
                               sequence_ * 2'560'000, sequence_ * 1'000, 10'000, 5'120'000});
  }
  return request;
}

void SimulatedServer::Take(const ServerExchangeReply& reply) {
  MUSTER_CHECK(!reply.unknown_incarnation);
  settled_ = reply.owns.empty();
  const auto find = [this](PartitionId id) {
    return std::ranges::find(owned_, id, &OwnedPartition::partition);
  };
  for (const OwnCommand& own : reply.owns) {
    const auto found = find(own.partition);
    if (found == owned_.end()) {
      owned_.push_back({own.partition, own.epoch, own.manifest.number});
    } else {
      *found = {own.partition, own.epoch, own.manifest.number};
    }
  }
  for (const AcceptedSnapshot& accepted : reply.accepted) {
    const auto found = find(accepted.partition);
    if (found != owned_.end()) found->accepted = accepted.number;
  }
  snapshots_.clear();
  for (const SnapshotCommand& command : reply.snapshots) {
    // Each snapshot is a base, which replaces the earlier chain.
    const std::string name = ToString(command.partition) + "-" + ToString(command.number) + ".sst";
    snapshots_.push_back({command.partition,
                          command.epoch,
                          {command.number, command.cut, {{name, 1 << 20, command.number}}}});
  }
  if (reply.forget.has_value()) forget_version_ = reply.forget->version;
}

}  // namespace muster
