#include "scaler/sensor/partition_heat.h"

#include <chrono>
#include <limits>

namespace muster::scaler {
namespace {

constexpr double kNoRate = std::numeric_limits<double>::quiet_NaN();

bool WentBack(const PartitionTraffic& from, const PartitionTraffic& to) {
  return to.pulls < from.pulls || to.pushes < from.pushes || to.moved_bytes < from.moved_bytes ||
         to.service_us < from.service_us;
}

PartitionRate RateOf(const PartitionTraffic& from, const PartitionTraffic& to, double seconds) {
  const auto per_second = [seconds](uint64_t before, uint64_t after) {
    return static_cast<double>(after - before) / seconds;
  };
  return {.pulls = per_second(from.pulls, to.pulls),
          .pushes = per_second(from.pushes, to.pushes),
          .bytes = per_second(from.moved_bytes, to.moved_bytes),
          .service_us = per_second(from.service_us, to.service_us)};
}

}  // namespace

void PartitionHeat::OnPage(const PartitionList& page, TimePoint at) {
  for (const PartitionStatus& status : page.partitions) {
    const bool known = seen_.contains(status.partition);
    if (!known && seen_.size() >= kPartitionsMax) continue;
    Seen& seen = seen_[status.partition];
    if (known && at <= seen.at) continue;
    const bool same = known && seen.owner_incarnation == status.owner_incarnation &&
                      !WentBack(seen.traffic, status.traffic);
    const double seconds = std::chrono::duration<double>(at - seen.at).count();
    seen.rate =
        same ? RateOf(seen.traffic, status.traffic, seconds)
             : PartitionRate{
                   .pulls = kNoRate, .pushes = kNoRate, .bytes = kNoRate, .service_us = kNoRate};
    seen.rate.partition = status.partition;
    seen.owner_incarnation = status.owner_incarnation;
    seen.at = at;
    seen.traffic = status.traffic;
  }
}

std::vector<PartitionRate> PartitionHeat::Rates() const {
  std::vector<PartitionRate> rates;
  rates.reserve(seen_.size());
  for (const auto& [partition, seen] : seen_) rates.push_back(seen.rate);
  return rates;
}

}  // namespace muster::scaler
