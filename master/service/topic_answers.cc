#include "master/service/topic_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace muster {
namespace {

constexpr int kDelayOctaveMax = 20;  // as proto/admin.proto says

/// Offsets of a topic partition that can be read and are in no range yet.
uint64_t Uncut(const StreamTable::Progress& partition) {
  const uint64_t end =
      std::min(partition.stable_end, partition.position.end.value_or(partition.stable_end));
  return end > partition.position.cut ? end - partition.position.cut : 0;
}

uint64_t Milliseconds(std::optional<std::chrono::milliseconds> quantile) {
  return static_cast<uint64_t>(quantile.value_or(std::chrono::milliseconds(0)).count());
}

void FillDelays(const DelayHistogram& total, const DelayHistogram& recent, v1::DelayStatus* to) {
  to->set_records(recent.count());
  to->set_p50_ms(Milliseconds(recent.Quantile(0.5)));
  to->set_p99_ms(Milliseconds(recent.Quantile(0.99)));
  to->set_total_records(total.count());
  to->set_total_p50_ms(Milliseconds(total.Quantile(0.5)));
  to->set_total_p99_ms(Milliseconds(total.Quantile(0.99)));
  to->set_total_ms(Milliseconds(total.sum()));
  for (int octave = 2; octave <= kDelayOctaveMax; ++octave) {
    to->add_buckets(total.CountBelow(std::chrono::milliseconds(int64_t{1} << octave)));
  }
}

void FillPartition(const StreamTable::Progress& partition, StepTime at,
                   v1::TopicPartitionStatus* to) {
  to->set_partition(partition.position.partition.value());
  to->set_begin(partition.position.begin);
  to->set_cut(partition.position.cut);
  to->set_committed(partition.committed);
  if (partition.position.end.has_value()) to->set_end(*partition.position.end);
  to->set_open_ranges(partition.open_ranges);
  to->set_lost(partition.lost);
  if (!partition.seen) return;
  to->set_log_begin(partition.log_begin);
  to->set_stable_end(partition.stable_end);
  to->set_lag(partition.lag.value_or(0));
  to->set_held_back(partition.held_back.value_or(0));
  const WallTime age = at.wall - partition.oldest.value_or(at.wall);
  to->set_lag_ms(static_cast<uint64_t>(
      std::max(std::chrono::floor<std::chrono::milliseconds>(age).count(), int64_t{0})));
}

}  // namespace

void FillStream(const MasterCore& core, DatasetId dataset, StepTime at, v1::StreamStatus* to) {
  const Ledger& ledger = core.ledger();
  const StreamWatch* watch = core.WatchOf(dataset);
  if (watch != nullptr) {
    to->set_trouble(ValidUtf8(watch->error));
    to->set_dead_letter_trouble(ValidUtf8(watch->dead_letter_trouble));
    const StreamDelays& delays = watch->delays;
    if (delays.total().count() > 0) {
      FillDelays(delays.total(), delays.Recent(at.now), to->mutable_delay());
    }
  }
  to->set_topic(ledger.plan()[dataset.value()].stream->topic);
  to->set_open(ledger.queue().IsOpen(dataset));
  to->set_cluster(ledger.streams().cluster(dataset));
  uint64_t lag = 0, lag_ms = 0, held_back = 0;
  const std::vector<StreamTable::Progress> progress = ledger.streams().ProgressOf(dataset);
  bool seen = !progress.empty();
  for (const StreamTable::Progress& partition : progress) {
    v1::TopicPartitionStatus* status = to->add_partitions();
    FillPartition(partition, at, status);
    seen = seen && partition.seen;
    lag += status->lag();
    lag_ms = std::max(lag_ms, status->lag_ms());
    held_back += status->held_back();
  }
  // What is not known of one partition is not known of all.
  if (seen) {
    to->set_lag(lag);
    to->set_lag_ms(lag_ms);
    to->set_held_back(held_back);
  }
}

void FillRange(const Ledger& ledger, const ShardId& shard, v1::ShardStatus* to) {
  const StreamRange* range = ledger.streams().Find(shard);
  if (range == nullptr) return;
  to->set_source(fmt::format("{}[{}]", ledger.plan()[shard.dataset.value()].stream->topic,
                             range->partition.value()));
  to->set_first_record(range->begin);
  to->set_records(static_cast<uint32_t>(range->end - range->begin));
}

uint64_t RecordsSoFar(const Ledger& ledger, DatasetId dataset) {
  uint64_t records = ledger.RecordsDone(dataset, EpochIndex(0));
  for (const auto& [shard, range] : ledger.streams().RangesOf(dataset)) {
    if (!ledger.queue().FindDone(shard).has_value()) records += range.end - range.begin;
  }
  for (const StreamTable::Progress& partition : ledger.streams().ProgressOf(dataset)) {
    records += Uncut(partition);
  }
  return records;
}

}  // namespace muster
