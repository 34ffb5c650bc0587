#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "proto/status/partition_status.h"

namespace muster::scaler {

/// What workers ask of a partition, per second between the two newest readings of its owner's
/// process; NaN: not known (yet, or because another process owns it now).
struct PartitionRate {
  uint32_t partition = 0;
  double pulls = 0;
  double pushes = 0;
  double bytes = 0;
  double service_us = 0;  // of a second
};

/// Where the load goes. A value with one owner; not thread-safe.
class PartitionHeat {
 public:
  static constexpr size_t kPartitionsMax = 65'536;

  /// A page of the master's answer, taken at `at`; every few seconds. Pages may come at different
  /// times. Partitions beyond kPartitionsMax are left out.
  void OnPage(const PartitionList& page, TimePoint at);
  /// Of every partition that was heard of, ascending.
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
