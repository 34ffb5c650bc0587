#include "master/service/answers/epoch_answers.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "master/service/answers/topic_answers.h"

namespace muster {
namespace {

constexpr uint32_t kEpochsMax = 1'000;

EpochStatus EpochOf(const Ledger& ledger, DatasetId id, EpochIndex epoch) {
  const EpochCounts counts = ledger.queue().Counts(id, epoch);
  EpochStatus status{.epoch = epoch.value(),
                     .records_expected = ledger.streams().Grows(id)
                                             ? RecordsSoFar(ledger, id)
                                             : ledger.plan()[id.value()].records,
                     .records_done = ledger.RecordsDone(id, epoch),
                     .records_committed = ledger.RecordsCommitted(id, epoch),
                     .shards = {.total = counts.shards,
                                .todo = counts.shards - counts.committed - counts.done -
                                        counts.leased - counts.failed,
                                .leased = counts.leased,
                                .done = counts.done,
                                .committed = counts.committed,
                                .failed = counts.failed}};
  return status;
}

/// How many epochs have begun. They begin in order.
uint32_t EpochsBegun(const Ledger& ledger, DatasetId id) {
  const auto begun = [&](uint32_t e) {
    const EpochCounts counts = ledger.queue().Counts(id, EpochIndex(e));
    return counts.committed + counts.done + counts.leased + counts.failed > 0;
  };
  uint32_t low = 0, high = ledger.queue().epochs(id);
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (begun(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// All, or up to the one after the newest that has begun, but none that was thinned out.
std::vector<EpochIndex> ListableEpochs(const Ledger& ledger, DatasetId id) {
  const uint32_t total = ledger.queue().epochs(id);
  uint32_t end = total;
  if (total > kEpochsMax) end = std::clamp(EpochsBegun(ledger, id) + 1, kEpochsMax, total);
  std::vector<EpochIndex> epochs = ledger.totals().KnownEpochs(id);
  const auto known = static_cast<std::ptrdiff_t>(epochs.size());
  const IntervalSet& whole = ledger.queue().WholeEpochs(id);
  uint32_t next = 0;
  const auto add_until = [&](uint64_t until) {
    for (; next < until; ++next) {
      const EpochIndex epoch(next);
      if (!std::binary_search(epochs.begin(), epochs.begin() + known, epoch)) {
        epochs.push_back(epoch);
      }
    }
  };
  for (const auto& [begin, after] : whole.intervals()) {
    add_until(begin);
    next = static_cast<uint32_t>(after);
  }
  add_until(end);
  std::ranges::sort(epochs);
  return epochs;
}

}  // namespace

void AddEpochs(const Ledger& ledger, DatasetId id, DatasetStatus* status) {
  const uint32_t total = ledger.queue().epochs(id);
  const DatasetPlan& plan = ledger.plan()[id.value()];
  const uint64_t thinned = ledger.totals().ThinnedEpochs(id) * plan.records;
  status->omitted_records_done = status->omitted_records_committed = thinned;
  const std::vector<EpochIndex> epochs = ListableEpochs(ledger, id);
  const size_t omitted = epochs.size() - std::min<size_t>(epochs.size(), kEpochsMax);
  for (size_t i = 0; i < omitted; ++i) {
    status->omitted_records_done += ledger.RecordsDone(id, epochs[i]);
    status->omitted_records_committed += ledger.RecordsCommitted(id, epochs[i]);
  }
  for (size_t i = omitted; i < epochs.size(); ++i) {
    status->epochs.push_back(EpochOf(ledger, id, epochs[i]));
  }
  status->omitted_records_expected = plan.records * (total - status->epochs.size());
}

}  // namespace muster
