#include "master/service/stream_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace muster {
namespace {

/// Offsets of a topic partition that can be read and are in no range yet.
uint64_t Uncut(const StreamTable::Progress& partition) {
  const uint64_t end =
      std::min(partition.stable_end, partition.position.end.value_or(partition.stable_end));
  return end > partition.position.cut ? end - partition.position.cut : 0;
}

}  // namespace

void FillStream(const MasterCore& core, DatasetId dataset, WallTime wall, v1::StreamStatus* to) {
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
    if (partition.oldest.has_value() && wall > *partition.oldest) {
      const auto age =
          std::chrono::duration_cast<std::chrono::milliseconds>(wall - *partition.oldest);
      status->set_lag_ms(static_cast<uint64_t>(age.count()));
    }
    lag += status->lag();
    lag_ms = std::max(lag_ms, status->lag_ms());
  }
  to->set_lag(lag);
  to->set_lag_ms(lag_ms);
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
