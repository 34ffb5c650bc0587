#pragma once

#include <memory>
#include <string>
#include <utility>

#include "master/sources/dataset_source.h"

namespace muster {

/// A source that is nowhere: shards of a layout, the shard with number n at "/data/n".
class FakeSource : public DatasetSource {
 public:
  explicit FakeSource(ShardLayout layout) : layout_(std::move(layout)) {}

  absl::Status CheckSettings() const override { return absl::OkStatus(); }
  absl::StatusOr<SourcePreview> Preview() const override { return SourcePreview(); }
  absl::Status Look(const LookOptions&) override { return absl::OkStatus(); }
  absl::Status Keep() override { return absl::OkStatus(); }
  absl::Status OpenKept() override { return absl::OkStatus(); }
  const ShardLayout& layout() const override { return layout_; }
  std::string Fingerprint() const override { return "fake"; }
  void Locate(uint32_t, uint64_t number, ShardWork* work) const override {
    work->path = "/data/" + std::to_string(number);
  }

 private:
  const ShardLayout layout_;
};

}  // namespace muster
