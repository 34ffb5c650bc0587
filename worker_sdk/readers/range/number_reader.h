#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker_sdk/readers/shard_reader.h"

namespace muster::sdk {

/// Makes the records of shards that are record numbers. Thread-safe.
class NumberReader final : public ShardReader {
 public:
  /// More records of a shard come from a mistake in the job file, or from a damaged message.
  static constexpr uint32_t kRecordsMax = 1u << 26;

  /// Never waits. kInvalidArgument: more than kRecordsMax. kResourceExhausted: no memory for the
  /// numbers.
  absl::StatusOr<ShardRecords> Read(const ShardWork& work, const KeepWaiting&) override;
  std::string NameOf(const ShardWork& work) const override;
  /// "record 17".
  std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                         size_t position) const override;
};

}  // namespace muster::sdk
