#pragma once

#include <memory>
#include <string>
#include <utility>

#include "master/sources/dataset_source.h"

namespace muster {

/// A source that is nowhere: shards of a layout, the one whose first record is n in the file
/// "/data/n".
class FakeSource : public DatasetSource {
 public:
  explicit FakeSource(std::shared_ptr<const ShardLayout> layout) : layout_(std::move(layout)) {}

  absl::Status CheckSettings() const override { return absl::OkStatus(); }
  absl::StatusOr<SourcePreview> Preview() const override { return SourcePreview(); }
  absl::Status Look(const LookOptions&) override { return absl::OkStatus(); }
  absl::Status Keep() override { return absl::OkStatus(); }
  absl::Status OpenKept() override { return absl::OkStatus(); }
  std::shared_ptr<const ShardLayout> layout() const override { return layout_; }
  std::string Fingerprint() const override { return "fake"; }
  void Locate(std::span<const RecordRun> runs, ShardWork* work) const override {
    for (const RecordRun& run : runs) {
      work->runs.push_back({.file = static_cast<uint32_t>(work->files.size()),
                            .first_record = run.first_record,
                            .record_count = run.record_count});
      work->files.push_back({.path = "/data/" + std::to_string(run.first_record)});
    }
  }

 private:
  const std::shared_ptr<const ShardLayout> layout_;
};

}  // namespace muster
