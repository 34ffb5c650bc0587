#include "scaler/sensor/master_digest.h"

#include <algorithm>

namespace muster::scaler {
namespace {

using std::chrono::microseconds;

microseconds Micros(uint64_t us) {
  return microseconds(static_cast<int64_t>(us));
}

WorkerTotals ToWorkerTotals(const v1::NodeStatus& node) {
  const v1::WorkerTimes& times = node.times();
  return {.records = times.records_trained(),
          .minibatches = times.minibatches_finished(),
          .computing = Micros(times.compute_us()),
          .waiting_shards = Micros(times.wait_shard_us()),
          .waiting_pulls = Micros(times.wait_pull_us()),
          .waiting_pushes = Micros(times.wait_push_us()),
          .shards_held = node.shards_held()};
}

ServerTotals ToServerTotals(const v1::NodeStatus& node) {
  const v1::ServerCounters& counters = node.counters();
  return {.pulls = counters.pulls(),
          .rows = counters.pulled_rows(),
          .parts = counters.parts_applied() + counters.parts_skipped(),
          .moved_bytes = counters.received_bytes() + counters.sent_bytes(),
          .serving = Micros(counters.service_us()),
          .peer_requests = node.peer_pulls() + node.peer_pushes(),
          .peer_round_trip = Micros(node.peer_pull_us() + node.peer_push_us()),
          .partitions_serving = node.partitions_serving()};
}

MasterNode ToMasterNode(const v1::NodeStatus& node) {
  MasterNode seen{.state = ParseNodeState(node.state()).value_or(NodeState::kStarting),
                  .start = StartNumber(node.start()),
                  .incarnation = node.incarnation(),
                  .draining = node.drain() == "draining",
                  .drained = node.drain() == "drained",
                  .serves_all = node.partitions_serving() >= node.partitions()};
  // Before the first word of a process its record still has the totals of the one before.
  const bool heard = seen.state == NodeState::kRunning || seen.state == NodeState::kLost;
  if (heard && node.role() == ToString(NodeRole::kWorker)) seen.worker = ToWorkerTotals(node);
  if (heard && node.role() == ToString(NodeRole::kServer)) seen.server = ToServerTotals(node);
  return seen;
}

/// Of all datasets of training together.
struct Backlog {
  uint64_t records = 0;
  bool topic = false;  // to which more will come
  bool known = true;   // the lag of all such
};

void AddDataset(const v1::DatasetStatus& dataset, MasterDigest* digest, Backlog* backlog) {
  uint64_t expected = dataset.omitted_records_expected();
  uint64_t done = dataset.omitted_records_done();
  bool leased = false;
  for (const v1::EpochStatus& epoch : dataset.epochs()) {
    expected += epoch.records_expected();
    done += epoch.records_done();
    leased |= epoch.shards_leased() > 0;
  }
  const bool evaluation = dataset.mode() == 1;
  digest->records_expected += expected;
  digest->records_done += done;
  digest->leased |= leased;
  digest->open |= dataset.stream().open();
  digest->sources_away |= !dataset.stream().trouble().empty();
  digest->evaluating |= evaluation && leased;
  if (evaluation) return;
  const uint64_t left = expected - std::min(done, expected);
  digest->training_left += left;
  // Of an open topic what is known so far is a part of it.
  backlog->records += dataset.stream().open() ? dataset.stream().lag() : left;
  if (!dataset.stream().open()) return;
  backlog->topic = true;
  backlog->known &= dataset.stream().has_lag();
}

}  // namespace

MasterDigest Digest(const v1::JobStatus& status, TimePoint asked_at) {
  MasterDigest digest{.asked_at = asked_at, .master_incarnation = status.master_incarnation()};
  if (v1::JobState_IsValid(status.state())) digest.phase = static_cast<JobPhase>(status.state());
  Backlog backlog;
  for (const v1::DatasetStatus& dataset : status.datasets()) AddDataset(dataset, &digest, &backlog);
  if (backlog.topic && backlog.known) digest.backlog = backlog.records;
  for (const v1::NodeStatus& node : status.nodes()) {
    digest.nodes[node.name()] = ToMasterNode(node);
  }
  return digest;
}

}  // namespace muster::scaler
