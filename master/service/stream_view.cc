#include "master/service/stream_view.h"

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

}  // namespace

void FillStream(const MasterCore& core, DatasetId dataset, StepTime at, v1::StreamStatus* to) {
  const Ledger& ledger = core.ledger();
  to->set_trouble(ValidUtf8(core.StreamTrouble(dataset)));
  to->set_topic(ledger.plan()[dataset.value()].stream->topic);
  to->set_open(ledger.queue().IsOpen(dataset));
  to->set_cluster(ledger.streams().cluster(dataset));
  uint64_t lag = 0, lag_ms = 0;
  for (const StreamTable::Progress& partition : ledger.streams().ProgressOf(dataset)) {
    v1::TopicPartitionStatus* status = to->add_partitions();
    status->set_partition(partition.position.partition.value());
    status->set_begin(partition.position.begin);
    status->set_cut(partition.position.cut);
    status->set_committed(partition.committed);
    if (partition.position.end.has_value()) status->set_end(*partition.position.end);
    if (partition.seen) {
      status->set_log_begin(partition.log_begin);
      status->set_stable_end(partition.stable_end);
    }
    status->set_lag(partition.lag);
    status->set_open_ranges(partition.open_ranges);
    status->set_lost(partition.lost);
    if (partition.oldest.has_value() && at.wall > *partition.oldest) {
      const auto age =
          std::chrono::duration_cast<std::chrono::milliseconds>(at.wall - *partition.oldest);
      status->set_lag_ms(static_cast<uint64_t>(age.count()));
    }
    lag += status->lag();
    lag_ms = std::max(lag_ms, status->lag_ms());
  }
  to->set_lag(lag);
  to->set_lag_ms(lag_ms);
  const StreamDelays* delays = core.DelaysOf(dataset);
  if (delays != nullptr && delays->total().count() > 0) {
    FillDelays(delays->total(), delays->Recent(at.now), to->mutable_delay());
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
