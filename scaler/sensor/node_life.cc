#include "scaler/sensor/node_life.h"

#include <algorithm>

namespace muster::scaler {
namespace {

/// If a total goes back, a restarted master has not heard it again yet. So the larger one is kept.
template <typename T>
void Raise(T* total, const T& seen) {
  *total = std::max(*total, seen);
}

}  // namespace

bool NodeLife::HasTotals() const {
  return worker_.computing.count() > 0 || worker_.waiting_shards.count() > 0 ||
         worker_.minibatches > 0 || server_.pulls > 0 || server_.parts > 0;
}

NodeLife::Heard NodeLife::Hear(const MasterNode& seen, uint64_t master_incarnation,
                               TimePoint asked_at) {
  Heard heard = Heard::kMore;
  if (seen.incarnation != incarnation_) {
    if (incarnation_ != 0) heard = Heard::kNewSession;
    incarnation_ = seen.incarnation;
    worker_ = {};
    server_ = {};
    master_incarnation_ = master_incarnation;
    settling_until_.reset();
    requests_before_ = 0;
    round_trip_before_ = {};
  }
  const bool had_totals = HasTotals();
  Raise(&worker_.records, seen.worker.records);
  Raise(&worker_.minibatches, seen.worker.minibatches);
  Raise(&worker_.computing, seen.worker.computing);
  Raise(&worker_.waiting_shards, seen.worker.waiting_shards);
  Raise(&worker_.waiting_pulls, seen.worker.waiting_pulls);
  Raise(&worker_.waiting_pushes, seen.worker.waiting_pushes);
  worker_.shards_held = seen.worker.shards_held;
  worker_.awaited_step = seen.worker.awaited_step;
  worker_.peers_waiting = seen.worker.peers_waiting;
  worker_.group_part = seen.worker.group_part;
  Raise(&worker_.group_moved, seen.worker.group_moved);
  Raise(&server_.pulls, seen.server.pulls);
  Raise(&server_.rows, seen.server.rows);
  Raise(&server_.parts, seen.server.parts);
  Raise(&server_.moved_bytes, seen.server.moved_bytes);
  Raise(&server_.serving, seen.server.serving);
  server_.partitions_serving = seen.server.partitions_serving;
  HearPeers(seen.server, master_incarnation, asked_at);
  return heard == Heard::kMore && !had_totals && HasTotals() ? Heard::kFirst : heard;
}

void NodeLife::HearPeers(const ServerTotals& seen, uint64_t master_incarnation,
                         TimePoint asked_at) {
  if (master_incarnation != master_incarnation_) {
    master_incarnation_ = master_incarnation;
    settling_until_ = asked_at + kPeersSettle;
  }
  if (settling_until_.has_value()) {
    if (asked_at < *settling_until_) return;
    settling_until_.reset();
    requests_before_ = server_.peer_requests - std::min(server_.peer_requests, seen.peer_requests);
    round_trip_before_ =
        server_.peer_round_trip - std::min(server_.peer_round_trip, seen.peer_round_trip);
  }
  Raise(&server_.peer_requests, requests_before_ + seen.peer_requests);
  Raise(&server_.peer_round_trip, round_trip_before_ + seen.peer_round_trip);
}

NodeSample NodeLife::Sample(const NodeReading* reading, TimePoint at) {
  if (reading != nullptr) {
    usage_ = reading->usage;
    NodeUsage& usage = *usage_;
    Raise(&last_.cpu, usage.cpu.value_or(last_.cpu));
    Raise(&last_.throttled, usage.throttled);
    if (usage.cpu.has_value()) usage.cpu = last_.cpu;
    usage.throttled = last_.throttled;
    last_.memory_bytes = usage.memory_bytes;
    last_.memory_peak_bytes = usage.memory_peak_bytes;
    last_.memory_limit_bytes = usage.memory_limit_bytes;
    last_.memory_pressure_percent = usage.memory_pressure_percent.value_or(-1);
    last_.cpu_pressure_percent = usage.cpu_pressure_percent.value_or(-1);
  }
  last_.at = at;
  last_.worker = worker_;
  last_.server = server_;
  return last_;
}

}  // namespace muster::scaler
