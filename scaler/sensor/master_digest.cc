#include "scaler/sensor/master_digest.h"

#include <algorithm>
#include <set>
#include <string>

namespace muster::scaler {
namespace {

using std::chrono::microseconds;

microseconds Micros(uint64_t us) {
  return microseconds(static_cast<int64_t>(us));
}

WorkerTotals ToWorkerTotals(const WorkerStatus& worker) {
  const WorkerTimes& times = worker.times;
  return {.records = times.records_trained,
          .minibatches = times.minibatches_finished,
          .computing = Micros(times.compute_us),
          .waiting_shards = Micros(times.wait_shard_us),
          .waiting_pulls = Micros(times.wait_pull_us),
          .waiting_pushes = Micros(times.wait_push_us),
          .shards_held = static_cast<uint32_t>(worker.shards_held)};
}

ServerTotals ToServerTotals(const ServerStatus& server) {
  const ServerCounters& counters = server.counters;
  const PeerTimes& peers = server.seen_by_workers;
  return {.pulls = counters.pulls,
          .rows = counters.pulled_rows,
          .parts = counters.parts_applied + counters.parts_skipped,
          .moved_bytes = counters.received_bytes + counters.sent_bytes,
          .serving = Micros(counters.service_us),
          .peer_requests = peers.pulls + peers.pushes,
          .peer_round_trip = Micros(peers.pull_us + peers.push_us),
          .partitions_serving = server.partitions_serving};
}

MasterNode ToMasterNode(const NodeStatus& node) {
  MasterNode seen{.says = {.state = node.state, .drain = node.drain},
                  .start = StartNumber(node.start),
                  .incarnation = node.incarnation};
  if (node.server.has_value()) {
    seen.says.serves_all = node.server->partitions_serving >= node.server->partitions;
  }
  // Until the master hears from a process, its record has the totals of the process before.
  const bool heard = node.state == NodeState::kRunning || node.state == NodeState::kLost;
  if (heard && node.worker.has_value()) seen.worker = ToWorkerTotals(*node.worker);
  if (heard && node.server.has_value()) seen.server = ToServerTotals(*node.server);
  if (node.own_usage.has_value()) seen.usage = ToNodeUsage(*node.own_usage);
  return seen;
}

/// Notes which workers a synchronous group waits for. The other members only wait for these,
/// whatever work they hold.
void AddGroup(const JobStatus& status, MasterDigest* digest) {
  const GroupStatus& group = *status.group;
  uint32_t waiting = 0;
  for (const GroupProcessStatus& process : group.processes) {
    if (process.standing == GroupStanding::kMember && !process.awaited) ++waiting;
  }
  std::set<std::string> known;
  for (const GroupProcessStatus& process : group.processes) {
    known.insert(process.worker);
    const auto node = digest->nodes.find(process.worker);
    if (node == digest->nodes.end()) continue;
    WorkerTotals& worker = node->second.worker;
    worker.group_moved = process.moved;
    if (!process.awaited) continue;
    const bool learns = process.standing == GroupStanding::kLearner;
    worker.group_part = learns ? GroupPart::kLearn : GroupPart::kStep;
    worker.awaited_step = process.step.value_or(learns ? 0 : group.step) + 1;
    if (!learns) worker.peers_waiting = waiting;
  }
  for (const NodeStatus& node : status.nodes) {
    const bool runs = node.role == "worker" && node.state == NodeState::kRunning;
    if (runs && !known.contains(node.name)) {
      digest->nodes.at(node.name).worker.group_part = GroupPart::kJoin;
    }
  }
}

/// The backlog of all training datasets together.
struct Backlog {
  uint64_t records = 0;
  bool topic = false;  // there is a topic that gets more records
  bool known = true;   // the lag of every such topic is known
};

void AddDataset(const DatasetStatus& dataset, MasterDigest* digest, Backlog* backlog) {
  uint64_t expected = dataset.omitted_records_expected;
  uint64_t done = dataset.omitted_records_done;
  bool leased = false;
  for (const EpochStatus& epoch : dataset.epochs) {
    expected += epoch.records_expected;
    done += epoch.records_done;
    leased |= epoch.shards.leased > 0;
  }
  const bool evaluation = dataset.mode == ToString(DatasetMode::kEvaluate);
  const bool open = dataset.stream.has_value() && dataset.stream->open;
  digest->records_expected += expected;
  digest->records_done += done;
  digest->leased |= leased;
  digest->open |= open;
  digest->sources_away |= dataset.stream.has_value() && !dataset.stream->trouble.empty();
  digest->evaluating |= evaluation && leased;
  if (evaluation) return;
  const uint64_t left = expected - std::min(done, expected);
  digest->training_left += left;
  // An open topic has more records than those that the master knows of, so its lag counts.
  backlog->records += open ? dataset.stream->lag.value_or(0) : left;
  if (!open) return;
  backlog->topic = true;
  backlog->known &= dataset.stream->lag.has_value();
}

}  // namespace

NodeUsage ToNodeUsage(const ProcessUsage& usage) {
  return {.cpu = Micros(usage.cpu_us),
          .throttled = Micros(usage.throttled_us),
          .memory_bytes = usage.memory_bytes,
          .memory_peak_bytes = usage.memory_peak_bytes,
          .memory_limit_bytes = usage.memory_limit_bytes,
          .memory_pressure_percent = std::nullopt,
          .cpu_pressure_percent = std::nullopt};
}

MasterDigest Digest(const JobStatus& status, TimePoint asked_at) {
  MasterDigest digest{
      .asked_at = asked_at, .state = status.state, .master_incarnation = status.master_incarnation};
  Backlog backlog;
  for (const DatasetStatus& dataset : status.datasets) AddDataset(dataset, &digest, &backlog);
  if (backlog.topic && backlog.known) digest.backlog = backlog.records;
  for (const NodeStatus& node : status.nodes) digest.nodes[node.name] = ToMasterNode(node);
  if (status.group.has_value()) AddGroup(status, &digest);
  return digest;
}

}  // namespace muster::scaler
