#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "master/sources/dataset_source.h"
#include "sharding/shard_layout.h"

namespace muster {

/// A dataset of record numbers. The job file alone says what it has. See DatasetSource.
class RangeDataset final : public DatasetSource {
 public:
  /// Requires a dataset with a RangeSpec.
  RangeDataset(const JobSpec& job, DatasetId dataset);

  absl::Status CheckSettings() const override { return absl::OkStatus(); }
  absl::StatusOr<SourcePreview> Preview() const override;
  absl::Status Look(const LookOptions&) override { return absl::OkStatus(); }
  absl::Status Keep() override { return absl::OkStatus(); }
  absl::Status OpenKept() override { return absl::OkStatus(); }

  std::shared_ptr<const ShardLayout> layout() const override { return layout_; }
  /// The number of records is among the fixed fields.
  std::string Fingerprint() const override { return "range"; }
  void Locate(std::span<const RecordRun> runs, ShardWork* work) const override;
  void Introduce(HelloResponse* hello) const override;

 private:
  const DatasetSpec dataset_;
  const std::shared_ptr<const ShardLayout> layout_;
};

}  // namespace muster
