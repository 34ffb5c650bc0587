#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "kafka/topic.h"
#include "master/sources/dataset_source.h"

namespace muster {

/// A dataset that is a topic. It grows, so it has no layout; the core cuts ranges from the reports
/// of a TopicFollower. See DatasetSource.
class TopicDataset final : public DatasetSource {
 public:
  /// Requires a dataset with a TopicSpec.
  TopicDataset(const JobSpec& job, DatasetId dataset);

  absl::Status CheckSettings() const override;
  absl::StatusOr<SourcePreview> Preview() const override;
  /// There is nothing to keep, because the topic is queried while the job runs.
  absl::Status Look(const LookOptions&) override { return absl::OkStatus(); }
  absl::Status Keep() override { return absl::OkStatus(); }
  absl::Status OpenKept() override { return absl::OkStatus(); }

  std::shared_ptr<const ShardLayout> layout() const override { return no_layout_; }
  std::optional<StreamPlan> Growth() const override;
  /// The contents of a topic change. Its bounds are among the fixed fields.
  std::string Fingerprint() const override { return "topic"; }
  void Introduce(HelloResponse* hello) const override;
  absl::StatusOr<std::unique_ptr<SourceFollower>> Follow(FollowOptions options) const override;

 private:
  kafka::ClientConfig ClientConfig() const;

  const DatasetId id_;
  const DatasetSpec dataset_;
  const TopicSpec topic_;
  const std::string group_;
  const std::shared_ptr<const ShardLayout> no_layout_ = std::make_shared<const ShardLayout>();
};

}  // namespace muster
