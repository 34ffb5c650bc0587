#include "ps/core/lane_traffic.h"

#include "base/check.h"

namespace muster::ps {

LaneTraffic::LaneTraffic(LaneState* lane) : lane_(lane), partitions_(lane->slots().size()) {}

void LaneTraffic::CountPart(const Slot& slot, Kind kind, uint64_t keys, uint64_t floats,
                            RequestProgress* progress) {
  Counted& counted = partitions_[slot.index];
  ++(kind == Kind::kPull ? counted.pulls : counted.pushes);
  counted.rows += keys;
  counted.bytes += keys * sizeof(uint64_t) + floats * sizeof(float);
  counted.changed = true;
  progress->served.push_back({&counted, keys});
}

void LaneTraffic::CountServed(const ServedRequest& request, const RequestProgress& progress) {
  lane_->counters.received_bytes += request.received_bytes;
  lane_->counters.sent_bytes += request.sent_bytes;
  service_ += request.time;
  uint64_t rows = 0;
  for (const auto& served : progress.served) rows += served.rows;
  if (rows == 0) return;
  const double per_row = static_cast<double>(request.time.count()) / static_cast<double>(rows);
  for (const auto& served : progress.served) {
    served.counted->service_ns += per_row * static_cast<double>(served.rows);
  }
}

void LaneTraffic::Answered(uint64_t sequence) {
  for (Counted& counted : partitions_) {
    if (counted.reported_in <= sequence) counted.reported_in = 0;
  }
}

void LaneTraffic::NewMaster() {
  for (const Slot& slot : lane_->slots()) {
    if (slot.partition != nullptr) Changed(slot);
  }
}

std::vector<PartitionTraffic> LaneTraffic::Report(uint64_t sequence, size_t limit) {
  std::vector<PartitionTraffic> report;
  for (size_t looked = 0; looked < partitions_.size() && report.size() < limit; ++looked) {
    const Slot& slot = lane_->slots()[next_++ % partitions_.size()];
    Counted& counted = partitions_[slot.index];
    if (slot.partition == nullptr || (!counted.changed && counted.reported_in == 0)) continue;
    MUSTER_CHECK(counted.reported_in <= sequence);
    counted.changed = false;
    counted.reported_in = sequence;
    const Partition::Sizes sizes = slot.partition->sizes();
    report.push_back({slot.id, counted.pulls, counted.pushes, counted.rows, counted.bytes,
                      static_cast<uint64_t>(counted.service_ns / 1'000), sizes.rows,
                      sizes.row_bytes});
  }
  return report;
}

}  // namespace muster::ps
