#include "master/core/done_details.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"

namespace muster {
namespace {

/// Memory of a DONE shard: its slot, its place in the queue (sharding/done_shards.h), and the
/// unused parts of their pages and blocks.
constexpr uint64_t kDoneBytes = 64;
/// Overhead of a packed record.
constexpr uint64_t kPackedBytes = sizeof(std::string) + 32;

bool IsCountAlone(const ShardMetrics& metrics, uint32_t records) {
  return metrics.records == records && metrics.rejected_records == 0 &&
         metrics.minibatches_again == 0 && metrics.records_later == 0 &&
         metrics.reject_samples.empty() && metrics.means.empty() && metrics.aucs.empty();
}

}  // namespace

uint64_t DoneDetails::BytesOf(const Slot& slot) {
  return kDoneBytes + (slot.metrics == nullptr ? 0 : kPackedBytes + slot.metrics->size());
}

uint32_t DoneDetails::PlaceOf(const std::string& worker) {
  if (const auto place = places_.find(worker); place != places_.end()) return place->second;
  uint32_t place = static_cast<uint32_t>(workers_.size());
  if (free_.empty()) {
    workers_.push_back({worker});
  } else {
    place = free_.back();
    free_.pop_back();
    workers_[place] = {worker};
  }
  places_[worker] = place;
  return place;
}

void DoneDetails::Add(const std::string& worker, uint32_t records, const ShardMetrics& metrics) {
  Slot slot{PlaceOf(worker), records, nullptr};
  ++workers_[slot.worker].slots;
  if (!IsCountAlone(metrics, records)) {
    slot.metrics =
        std::make_unique<const std::string>(fields::Encode(metrics, fields::Side::kOwnDisk));
  }
  bytes_ += BytesOf(slot);
  slots_.push_back(std::move(slot));
}

DoneDetail DoneDetails::Unpack(const Slot& slot) {
  MUSTER_CHECK(bytes_ >= BytesOf(slot));
  bytes_ -= BytesOf(slot);
  DoneDetail detail = Read(slot);
  Worker& worker = workers_[slot.worker];
  MUSTER_CHECK_MSG(worker.slots > 0, worker.name);
  if (--worker.slots == 0) {
    places_.erase(worker.name);
    free_.push_back(slot.worker);
  }
  return detail;
}

DoneDetail DoneDetails::Read(const Slot& slot) const {
  DoneDetail detail{workers_[slot.worker].name, slot.records, {}};
  if (slot.metrics == nullptr) {
    detail.metrics.records = slot.records;
  } else {
    auto metrics = fields::Decode<ShardMetrics>(*slot.metrics, fields::Side::kOwnDisk);
    MUSTER_CHECK_MSG(metrics.ok(), metrics.status().ToString());
    detail.metrics = *std::move(metrics);
  }
  return detail;
}

DoneDetail DoneDetails::TakeFirst() {
  MUSTER_CHECK(!slots_.empty());
  DoneDetail detail = Unpack(slots_.front());
  slots_.pop_front();
  return detail;
}

DoneDetail DoneDetails::TakeLast() {
  MUSTER_CHECK(!slots_.empty());
  DoneDetail detail = Unpack(slots_.back());
  slots_.pop_back();
  return detail;
}

}  // namespace muster
