#include "tests/scaler/rest/fake_job_api.h"

/// Datasets of the fake job that are topics.
namespace muster::scaler::rest::testing {
namespace {

constexpr uint64_t kLagPerPartition = 1234;
constexpr uint64_t kDelayMsPerPartition = 75'000;

/// What partition 1 has lost stays behind what is committed; the last ones lag most.
TopicPartitionStatus Behind(uint32_t number) {
  const uint64_t lag = kLagPerPartition * (number + 1);
  const uint64_t committed = 1'000'000 + 1000 * uint64_t{number};
  return {.partition = number,
          .begin = 1000,
          .cut = committed + lag / 2,
          .committed = committed,
          .log_begin = 1000,
          .stable_end = committed + lag,
          .lag = lag,
          .lag_ms = kDelayMsPerPartition * (number + 1),
          .open_ranges = 2 + number % 5,
          .lost = number == 1 ? 1200u : 0u};
}

}  // namespace

void FakeJobApi::AddTopics() {
  StreamStatus clicks{.topic = "page-clicks",
                      .open = true,
                      .held_back = 40,
                      .delay = DelayStatus{.records = 400, .p50_ms = 448, .p99_ms = 2560},
                      .partitions = {}};
  for (uint32_t i = 0; i < options_.topic_partitions; ++i) {
    clicks.partitions.push_back(Behind(i));
    clicks.lag = clicks.lag.value_or(0) + *clicks.partitions.back().lag;
    clicks.lag_ms = clicks.partitions.back().lag_ms;
  }
  // Cut to its end before the job's master was started again, which has not seen the topic yet.
  const StreamStatus orders{
      .topic = "orders",
      .trouble = "no broker of kafka-1:9092 answers: connection refused",
      .partitions = {{.cut = 5000, .committed = 4800, .end = 5000, .open_ranges = 1}}};
  const EpochStatus epoch{.shards = {.total = 1, .todo = 1}};
  datasets_.push_back(
      {.index = 2, .name = "clicks", .epochs_total = 1, .epochs = {epoch}, .stream = clicks});
  datasets_.push_back(
      {.index = 3, .name = "purchases", .epochs_total = 1, .epochs = {epoch}, .stream = orders});
}

/// Partition 0 of the first goes on, as fast as it is written.
void FakeJobApi::MoveTopics() {
  constexpr uint64_t kPerStep = 40;
  for (DatasetStatus& dataset : datasets_) {
    if (!dataset.stream || !dataset.stream->open) continue;
    TopicPartitionStatus& partition = dataset.stream->partitions.front();
    partition.cut += kPerStep;
    partition.committed += kPerStep;
    *partition.stable_end += kPerStep;
  }
}

}  // namespace muster::scaler::rest::testing
