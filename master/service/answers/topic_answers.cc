#include "master/service/answers/topic_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "base/text.h"

namespace muster {
namespace {

constexpr int kDelayOctaveMax = 20;  // as DelayStatus says

/// Offsets of a topic partition that are in no shard yet: up to the dataset's end, or, if that is
/// not known, those that can be read.
uint64_t Uncut(const StreamTable::Progress& partition) {
  const uint64_t end = partition.position.end.value_or(partition.stable_end);
  return end > partition.position.cut ? end - partition.position.cut : 0;
}

/// "topic[0] [500, 612), topic[1] [500, 544) and 3 more".
std::string RangesText(const std::string& topic, std::span<const OffsetRange> ranges) {
  constexpr size_t kShownMax = 4;
  std::string text;
  for (const OffsetRange& range : ranges.first(std::min(ranges.size(), kShownMax))) {
    text += fmt::format("{}{}[{}] [{}, {})", text.empty() ? "" : ", ", topic,
                        range.partition.value(), range.begin, range.end);
  }
  if (ranges.size() > kShownMax) text += fmt::format(" and {} more", ranges.size() - kShownMax);
  return text;
}

uint64_t Milliseconds(std::optional<std::chrono::milliseconds> quantile) {
  return static_cast<uint64_t>(quantile.value_or(std::chrono::milliseconds(0)).count());
}

DelayStatus DelaysOf(const DelayHistogram& total, const DelayHistogram& recent) {
  DelayStatus status{.records = recent.count(),
                     .p50_ms = Milliseconds(recent.Quantile(0.5)),
                     .p99_ms = Milliseconds(recent.Quantile(0.99)),
                     .total_records = total.count(),
                     .total_p50_ms = Milliseconds(total.Quantile(0.5)),
                     .total_p99_ms = Milliseconds(total.Quantile(0.99)),
                     .total_ms = Milliseconds(total.sum())};
  for (int octave = 2; octave <= kDelayOctaveMax; ++octave) {
    status.buckets.push_back(total.CountBelow(std::chrono::milliseconds(int64_t{1} << octave)));
  }
  return status;
}

TopicPartitionStatus PartitionOf(const StreamTable::Progress& partition, StepTime at) {
  TopicPartitionStatus status{.partition = partition.position.partition.value(),
                              .begin = partition.position.begin,
                              .cut = partition.position.cut,
                              .committed = partition.committed,
                              .end = partition.position.end,
                              .open_ranges = partition.open_ranges,
                              .lost = partition.lost};
  if (!partition.seen) return status;
  status.log_begin = partition.log_begin;
  status.stable_end = partition.stable_end;
  status.lag = partition.lag.value_or(0);
  status.held_back = partition.held_back.value_or(0);
  const WallTime age = at.wall - partition.oldest.value_or(at.wall);
  status.lag_ms = static_cast<uint64_t>(
      std::max(std::chrono::floor<std::chrono::milliseconds>(age).count(), int64_t{0}));
  return status;
}

}  // namespace

StreamStatus StreamOf(const MasterCore& core, DatasetId dataset, StepTime at) {
  const Ledger& ledger = core.ledger();
  StreamStatus status{.topic = ledger.plan()[dataset.value()].stream->topic,
                      .cluster = ledger.streams().cluster(dataset),
                      .open = ledger.queue().IsOpen(dataset)};
  if (const StreamTold* told = core.ToldOf(dataset)) {
    status.trouble = ValidUtf8(told->error);
    status.dead_letter_trouble = ValidUtf8(told->dead_letter_trouble);
    const StreamDelays& delays = told->delays;
    if (delays.total().count() > 0) status.delay = DelaysOf(delays.total(), delays.Recent(at.now));
  }
  uint64_t lag = 0, lag_ms = 0, held_back = 0;
  const std::vector<StreamTable::Progress> progress = ledger.streams().ProgressOf(dataset);
  bool seen = !progress.empty();
  for (const StreamTable::Progress& one : progress) {
    const TopicPartitionStatus& partition = status.partitions.emplace_back(PartitionOf(one, at));
    seen = seen && one.seen;
    lag += partition.lag.value_or(0);
    lag_ms = std::max(lag_ms, partition.lag_ms.value_or(0));
    held_back += partition.held_back.value_or(0);
  }
  // If a value is unknown for one partition, the sum is unknown.
  if (seen) {
    status.lag = lag;
    status.lag_ms = lag_ms;
    status.held_back = held_back;
  }
  return status;
}

void DescribeRange(const Ledger& ledger, const ShardId& shard, ShardStatus* to) {
  const StreamShard* cut = ledger.streams().Find(shard);
  if (cut == nullptr) return;
  const OffsetRange& first = cut->ranges.front();
  const std::string& topic = ledger.plan()[shard.dataset.value()].stream->topic;
  to->source = fmt::format("{}[{}]", topic, first.partition.value());
  if (cut->ranges.size() > 1) to->source = RangesText(topic, cut->ranges);
  to->first_record = first.begin;
  to->records = cut->offsets();
}

uint64_t RecordsSoFar(const Ledger& ledger, DatasetId dataset) {
  uint64_t records = ledger.RecordsDone(dataset, EpochIndex(0));
  for (const auto& [shard, cut] : ledger.streams().ShardsOf(dataset)) {
    if (!ledger.queue().FindDone(shard).has_value()) records += cut.offsets();
  }
  for (const StreamTable::Progress& partition : ledger.streams().ProgressOf(dataset)) {
    records += Uncut(partition);
  }
  return records;
}

}  // namespace muster
