#include "worker_sdk/readers/range/number_reader.h"

#include <fmt/format.h>

#include <new>
#include <vector>

#include "sharding/shard_order.h"

namespace muster::sdk {
namespace {

ShardRecords NumbersOf(const ShardWork& work) {
  std::vector<int64_t> numbers;
  numbers.reserve(work.record_count);
  for (const SourceRun& run : work.runs) {
    for (uint32_t i = 0; i < run.record_count; ++i) {
      numbers.push_back(static_cast<int64_t>(run.first_record + i));
    }
  }
  ShardRecords result;
  result.records.resize(numbers.size());
  result.numbers.reserve(numbers.size());
  for (const uint32_t index : RecordOrder(work.shuffle_seed, work.record_count)) {
    result.numbers.push_back(numbers[index]);
  }
  result.minibatches = EqualMinibatches(work);
  return result;
}

}  // namespace

absl::StatusOr<ShardRecords> NumberReader::Read(const ShardWork& work, const KeepWaiting&) {
  if (work.record_count > kRecordsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{} are {} record numbers: at most {} can be made at once, so make the shards smaller",
        NameOf(work), work.record_count, kRecordsMax));
  }
  try {
    return NumbersOf(work);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        fmt::format("no memory for the {} record numbers of a shard ({}): give the worker more, or "
                    "make the shards smaller",
                    work.record_count, NameOf(work)));
  }
}

std::string NumberReader::NameOf(const ShardWork& work) const {
  const SourceRun& first = work.runs.front();
  std::string name = fmt::format("records [{}, {}) of dataset '{}'", first.first_record,
                                 first.first_record + first.record_count, work.dataset_name);
  if (work.runs.size() > 1) name += fmt::format(" and {} more pieces", work.runs.size() - 1);
  return name;
}

std::string NumberReader::LocationOf(const ShardWork&, const ShardRecords& records,
                                     size_t position) const {
  return fmt::format("record {}", records.numbers[position]);
}

}  // namespace muster::sdk
