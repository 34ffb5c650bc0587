#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "proto/status/partition_status.h"

namespace muster::scaler {

/// How much workers ask of a partition per second. It is measured between the two newest reports of
/// the process that owns the partition. NaN if it is not known (yet, or because another process
/// owns it now).
struct PartitionRate {
  uint32_t partition = 0;
  double pulls = 0;
  double pushes = 0;
  double bytes = 0;
  double service_us = 0;  // of service time in each second
};

/// Shows which partitions have the most load. A value with one owner; not thread-safe.
class PartitionHeat {
 public:
  static constexpr size_t kPartitionsMax = 65'536;

  /// Takes a page of the master's answer of time `at`, every few seconds. Pages may come at
  /// different times. Partitions beyond kPartitionsMax are left out.
  void OnPage(const PartitionList& page, TimePoint at);
  /// The rates of every known partition, in ascending order.
  std::vector<PartitionRate> Rates() const;

 private:
  struct Seen {
    uint64_t owner_incarnation = 0;
    TimePoint at;
    PartitionTraffic traffic;
    PartitionRate rate;
  };
  std::map<uint32_t, Seen> seen_;
};

}  // namespace muster::scaler
