#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "master/sources/dataset_source.h"
#include "sharding/dataset_mix.h"

namespace muster {

/// The sources of the job's datasets, and the common numbering of their shards. DatasetId is the
/// position in JobSpec.datasets. Immutable after Open, so thread-safe.
class SourceCatalog {
 public:
  /// Checks the settings of every dataset, looks at every one, and keeps what was found. Nothing is
  /// written unless all are good: a job with a mistake in one dataset is fixed and run again
  /// without a new state directory. Only finished parts of the work are (LookOptions). Errors name
  /// dataset, part and what to do.
  static absl::StatusOr<std::unique_ptr<SourceCatalog>> Open(const JobSpec& job,
                                                             const ProgressFn& progress,
                                                             std::function<void()> alive = {});
  /// Opens the sources from what was kept, without the data, which need not exist any more. Writes
  /// nothing. kNotFound and kDataLoss name what is missing or damaged.
  static absl::StatusOr<std::unique_ptr<SourceCatalog>> OpenKept(const JobSpec& job);
  /// Checks that Open would succeed: gives its errors, but writes nothing.
  static absl::Status Check(const JobSpec& job, const ProgressFn& progress);
  /// DatasetSource::Preview of every dataset.
  static absl::StatusOr<std::vector<SourcePreview>> Preview(const JobSpec& job);

  /// Of sources that are open, one for each dataset of the job.
  SourceCatalog(const JobSpec& job, std::vector<std::unique_ptr<DatasetSource>> sources);

  uint32_t dataset_count() const { return static_cast<uint32_t>(datasets_.size()); }
  const ShardLayout& layout(DatasetId dataset) const;
  /// What the core must know of the datasets, in the job's order.
  std::vector<DatasetPlan> Plans() const;

  /// Completes what a worker needs to read the shard. For a shard of a layout, fills in everything;
  /// otherwise, keeps the core's values. A pure lookup; O(log parts). Requires a shard that exists.
  ///
  /// `first_step` counts minibatches in the order of epochs, and within an epoch in that in which
  /// those that are are mixed (DatasetMix), every train dataset in every epoch: a function of
  /// the shard alone. Evaluate datasets are counted each for itself.
  void Describe(const ShardId& shard, ShardWork* work) const;
  /// The same, without values from the core.
  ShardWork WorkOf(const ShardId& shard) const;
  /// DatasetSource::Introduce of every dataset.
  void Introduce(HelloResponse* hello) const;
  /// DatasetSource::Follow.
  absl::StatusOr<std::unique_ptr<SourceFollower>> Follow(DatasetId dataset,
                                                         FollowOptions options) const;

  /// For every dataset its name and DatasetSource::Fingerprint. The master journals it when the job
  /// begins and compares on resume: the state belongs to these data.
  std::vector<std::pair<std::string, std::string>> Fingerprint() const;

 private:
  struct Dataset {
    DatasetSpec spec;
    std::unique_ptr<DatasetSource> source;
    /// If IsMixed: its place in `mix_`.
    size_t in_mix = 0;
  };
  const Dataset& At(DatasetId dataset) const;
  /// A train dataset of files: it shares an epoch with the others.
  static bool IsMixed(const Dataset& dataset);
  /// Minibatches of the dataset's epochs, or of all train datasets', before this shard.
  uint64_t StepsBefore(const Dataset& dataset, const ShardId& shard) const;

  const uint64_t seed_;
  std::vector<Dataset> datasets_;
  std::vector<DatasetMix> mix_;  // the train datasets
  uint64_t epoch_steps_ = 0;     // of all of them
};

}  // namespace muster
