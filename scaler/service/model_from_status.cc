#include "scaler/service/model_from_status.h"

#include <fmt/format.h>

#include "admin/master_link.h"
#include "host/messages.h"

namespace muster::scaler {
namespace {

double SecondsOf(uint64_t microseconds) {
  return static_cast<double>(microseconds) / 1e6;
}

rest::Epoch EpochFromStatus(const v1::EpochStatus& status) {
  rest::Epoch epoch{
      .epoch = status.epoch(),
      .records_expected = status.records_expected(),
      .records_done = status.records_done(),
      .records_committed = status.records_committed(),
      .rejected_records = status.rejected_records(),
      .reject_samples = {status.reject_samples().begin(), status.reject_samples().end()}};
  for (const v1::MetricValue& metric : status.metrics()) {
    epoch.metrics[metric.name()] = metric.value();
  }
  // The master's DONE and records done include what is committed.
  epoch.shards = {.total = status.shards(),
                  .todo = status.shards() - status.shards_done() - status.shards_leased() -
                          status.shards_failed(),
                  .leased = status.shards_leased(),
                  .done = status.shards_done() - status.shards_committed(),
                  .committed = status.shards_committed(),
                  .failed = status.shards_failed()};
  return epoch;
}

rest::Delay DelayFromStatus(const v1::DelayStatus& status) {
  const auto seconds = [](uint64_t milliseconds) {
    return static_cast<double>(milliseconds) / 1e3;
  };
  return {.records = status.records(),
          .p50_seconds = seconds(status.p50_ms()),
          .p99_seconds = seconds(status.p99_ms()),
          .total_records = status.total_records(),
          .total_p50_seconds = seconds(status.total_p50_ms()),
          .total_p99_seconds = seconds(status.total_p99_ms()),
          .total_seconds = seconds(status.total_ms()),
          .buckets = {status.buckets().begin(), status.buckets().end()}};
}

/// Of all partitions of a topic, or of one: what is not known is absent.
template <typename From, typename To>
void LagFromStatus(const From& from, To* to) {
  if (from.has_lag()) to->lag = from.lag();
  if (from.has_lag_ms()) to->lag_seconds = static_cast<double>(from.lag_ms()) / 1e3;
  if (from.has_held_back()) to->held_back = from.held_back();
}

rest::Stream StreamFromStatus(const v1::StreamStatus& status) {
  rest::Stream stream{.topic = status.topic(),
                      .open = status.open(),
                      .trouble = status.trouble(),
                      .dead_letter_trouble = status.dead_letter_trouble()};
  LagFromStatus(status, &stream);
  if (status.has_delay()) stream.delay = DelayFromStatus(status.delay());
  for (const v1::TopicPartitionStatus& from : status.partitions()) {
    rest::TopicPartition& to = stream.partitions.emplace_back();
    to = {.partition = from.partition(),
          .begin = from.begin(),
          .cut = from.cut(),
          .committed = from.committed(),
          .open_ranges = from.open_ranges(),
          .lost = from.lost()};
    LagFromStatus(from, &to);
    if (from.has_end()) to.end = from.end();
    if (from.has_log_begin()) to.log_begin = from.log_begin();
    if (from.has_stable_end()) to.stable_end = from.stable_end();
  }
  return stream;
}

rest::WorkerFigures WorkerFromStatus(const v1::NodeStatus& status) {
  const v1::WorkerTimes& times = status.times();
  return {.records_committed = status.records_committed(),
          .minibatches = times.minibatches_finished(),
          .shards_held = status.shards_held(),
          .computing_seconds_total = SecondsOf(times.compute_us()),
          .waiting_shards_seconds_total = SecondsOf(times.wait_shard_us()),
          .waiting_pulls_seconds_total = SecondsOf(times.wait_pull_us()),
          .waiting_pushes_seconds_total = SecondsOf(times.wait_push_us())};
}

rest::ServerFigures ServerFromStatus(const v1::NodeStatus& status) {
  const v1::ServerCounters& counters = status.counters();
  return {.partitions = status.partitions(),
          .partitions_serving = status.partitions_serving(),
          .rows = counters.rows(),
          .row_bytes = counters.row_bytes(),
          .pulls = counters.pulls(),
          .pulled_rows = counters.pulled_rows(),
          .parts_applied = counters.parts_applied(),
          .parts_skipped = counters.parts_skipped(),
          .snapshots = counters.snapshots(),
          .snapshot_bytes = counters.snapshot_bytes(),
          .serving_seconds_total = SecondsOf(counters.service_us())};
}

}  // namespace

rest::Job JobFromStatus(const v1::JobStatus& status) {
  rest::Job job{.name = status.job(),
                .state = ToString(PhaseOf(status.state())),
                .reason = status.reason(),
                .master_incarnation = status.master_incarnation(),
                .uptime_ms = status.uptime_ms()};
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    if (dataset.mode() != 0) continue;
    job.progress.records_expected += dataset.omitted_records_expected();
    job.progress.records_done += dataset.omitted_records_done();
    job.progress.records_committed += dataset.omitted_records_done();
    for (const v1::EpochStatus& epoch : dataset.epochs()) {
      job.progress.records_expected += epoch.records_expected();
      job.progress.records_done += epoch.records_done();
      job.progress.records_committed += epoch.records_committed();
    }
  }
  job.counters = CountersByName(status.counters());
  return job;
}

rest::DatasetList DatasetsFromStatus(const v1::JobStatus& status) {
  rest::DatasetList list;
  for (int i = 0; i < status.datasets_size(); ++i) {
    const v1::DatasetStatus& from = status.datasets(i);
    rest::Dataset dataset{.index = static_cast<uint32_t>(i),
                          .name = from.name(),
                          .mode = from.mode() == 0 ? "train" : "evaluate",
                          .epochs_total = from.epochs_total()};
    for (const v1::EpochStatus& epoch : from.epochs()) {
      dataset.epochs.push_back(EpochFromStatus(epoch));
    }
    if (from.has_stream()) dataset.stream = StreamFromStatus(from.stream());
    list.datasets.push_back(std::move(dataset));
  }
  return list;
}

rest::Node NodeFromStatus(const v1::NodeStatus& status) {
  rest::Node node{.name = status.name(),
                  .role = status.role(),
                  .state = status.state(),
                  .drain = status.drain().empty() ? "none" : status.drain(),
                  .drain_left = status.drain_left(),
                  .pid = status.pid(),
                  .start = status.start(),
                  .restarts = status.restarts(),
                  .last_exit = status.last_exit(),
                  .heartbeat_age_ms = status.heartbeat_age_ms()};
  if (status.role() == "worker") node.worker = WorkerFromStatus(status);
  if (status.role() == "ps") node.server = ServerFromStatus(status);
  return node;
}

rest::Shard ShardFromStatus(const v1::ShardStatus& status) {
  return {.id = fmt::format("{}/{}/{}", status.id().dataset(), status.id().epoch(),
                            status.id().index()),
          .dataset = status.dataset(),
          .epoch = status.id().epoch(),
          .index = status.id().index(),
          .state = status.state(),
          .worker = status.worker(),
          .phase = status.phase(),
          .minibatches_started = status.minibatches_started(),
          .failures = status.failures(),
          .node_failures = status.node_failures(),
          .reasons = {status.reasons().begin(), status.reasons().end()},
          .age_ms = status.age_ms(),
          .source = status.source(),
          .first_record = status.first_record(),
          .records = status.records(),
          .first_line = status.first_line()};
}

rest::Partition PartitionFromStatus(const v1::PartitionStatus& status) {
  const v1::PartitionTraffic& traffic = status.traffic();
  rest::Partition partition{.partition = status.partition(),
                            .owner = status.owner(),
                            .epoch = status.owner_epoch(),
                            .state = status.state(),
                            .rows = traffic.rows(),
                            .row_bytes = traffic.row_bytes(),
                            .pulls = traffic.pulls(),
                            .pushes = traffic.pushes(),
                            .bytes_moved = traffic.moved_bytes(),
                            .service_seconds_total = SecondsOf(traffic.service_us()),
                            .snapshot_number = status.snapshot()};
  if (status.snapshot_age_ms() != 0) partition.snapshot_age_ms = status.snapshot_age_ms();
  return partition;
}

void AppendShardRuns(const v1::GetShardMapResponse& page, rest::ShardMap* map) {
  map->shards = page.shards();
  for (const v1::ShardRunStatus& run : page.runs()) {
    const uint64_t begin = map->runs.empty() ? 0 : map->runs.back().end;
    if (!map->runs.empty() && map->runs.back().state == run.state()) {
      map->runs.back().end = run.end();  // pages end within a run
    } else {
      map->runs.push_back({begin, run.end(), run.state()});
    }
  }
}

}  // namespace muster::scaler
