#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "master/sources/index_file.h"
#include "proto/messages/control.h"
#include "sharding/shard_layout.h"

namespace muster {

/// How far the indexing of a dataset is. Called on the thread that called Open, a few times a
/// second, only for datasets that are being scanned.
struct CatalogProgress {
  std::string_view dataset;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};
using ProgressFn = std::function<void(const CatalogProgress&)>;

/// What the job's datasets consist of: files, their pins, and where every shard lies. DatasetId is
/// the position in JobSpec.datasets; a dataset that is a topic has no files and no shards here.
/// Immutable after Open, so thread-safe.
class SourceCatalog {
 public:
  /// Expands the globs and indexes every dataset into `<stateDirectory>/index/<dataset>.idx`, or
  /// maps the index that is there, after checking that the files are still the pinned ones: by a
  /// look at each, and by reading the pins of those that differ from what was last seen. A
  /// damaged index is made again (the Fingerprint then tells whether the data are still the same).
  ///
  /// Errors name dataset, file and what to do: kNotFound (nothing matches, a file is gone),
  /// kInvalidArgument (no record, a line too long), kFailedPrecondition (a file changed, appeared
  /// or went since the job began; another minibatch size), kAborted (a file changes right now).
  static absl::StatusOr<std::unique_ptr<SourceCatalog>> Open(const JobSpec& job,
                                                             const ProgressFn& progress);

  /// As they were when they were indexed: from the indexes alone, without a look at the data, which
  /// need not be there any more. Writes nothing. kNotFound and kDataLoss name the index.
  static absl::StatusOr<std::unique_ptr<SourceCatalog>> OpenIndexes(const JobSpec& job);

  /// Whether Open would succeed: its errors, without writing anything. Datasets that were indexed
  /// before are compared with their pins, the others are read to the end.
  static absl::Status Check(const JobSpec& job, const ProgressFn& progress);

  uint32_t dataset_count() const { return static_cast<uint32_t>(datasets_.size()); }
  const ShardLayout& layout(DatasetId dataset) const;
  /// The files of a dataset, in the order of ShardLayout's sources.
  const std::vector<std::string>& files(DatasetId dataset) const;

  /// Everything a worker needs to read the shard. A pure lookup; O(log sources). Requires a shard
  /// that exists.
  ///
  /// `first_step` counts the minibatches of whole shards in the order of (epoch, train dataset,
  /// index), every train dataset in every epoch: a function of the shard alone, whatever its
  /// epoch's other datasets do. Evaluate datasets are counted each for itself.
  ShardWork WorkOf(const ShardId& shard) const;
  /// As above; the token has no influence.
  ShardWork WorkOf(const ShardId& shard, LeaseToken) const { return WorkOf(shard); }

  /// For every dataset its name and one hash over pins and layout, as text. The master journals it
  /// when the job begins and compares on resume: the state belongs to these data. Independent of
  /// where the files lie.
  std::vector<std::pair<std::string, std::string>> Fingerprint() const;

 private:
  struct Dataset {
    DatasetSpec spec;
    std::vector<std::string> files;
    /// None: a topic.
    std::optional<IndexFile> index;
    ShardLayout layout;
    /// Steps of one epoch: of what is counted with this dataset, and of that the part before it.
    uint64_t epoch_steps = 0;
    uint64_t steps_before = 0;
  };

  SourceCatalog(uint64_t seed, std::vector<Dataset> datasets);
  static Dataset Assemble(const DatasetSpec& spec, std::vector<std::string> files, IndexFile index);
  static Dataset AssembleStream(const DatasetSpec& spec) { return {spec, {}, {}, {}, 0, 0}; }

  uint64_t seed_;
  std::vector<Dataset> datasets_;
};

}  // namespace muster
