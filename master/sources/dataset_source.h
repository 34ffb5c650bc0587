#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text.h"
#include "job/job_spec.h"
#include "master/core/core_options.h"
#include "master/sources/source_follower.h"
#include "proto/messages/worker_control.h"
#include "proto/messages/worker_hello.h"
#include "sharding/shard_layout.h"

namespace muster {

/// Called with the progress of reading a dataset, on the calling thread, a few times a second, and
/// only for datasets that are read to the end.
struct SourceProgress {
  std::string_view dataset;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};
using ProgressFn = std::function<void(const SourceProgress&)>;

/// What a look at a source may do, and whom it tells. All functions may be empty.
struct LookOptions {
  ProgressFn progress = {};
  /// Called whenever something was done, by any thread: a look that takes hours lives.
  std::function<void()> alive = {};
  /// Finished parts of the work may be written beside what Keep writes, so that a look that is cut
  /// off, and made again, goes on there.
  bool keeps_parts = false;
};

/// The description of a dataset for users before its job runs. A value.
struct SourcePreview {
  std::string name;  // of the dataset
  std::string how;   // "train, 2 epochs"
  std::string what;  // "2 files, 100 bytes, about 9 records in 2 shards"
  /// What it consists of, one after the other.
  std::vector<std::string> parts;
  /// All of it for programs, by name.
  using Fact = std::variant<std::string, uint64_t, std::vector<std::string>>;
  std::map<std::string, Fact> facts;
};

/// The beginning of a preview: what the job file says of every dataset that has a layout.
inline SourcePreview BeginPreview(const DatasetSpec& dataset) {
  const bool train = dataset.mode == DatasetMode::kTrain;
  return {.name = dataset.name,
          .how = train ? "train, " + CountText(dataset.epochs, "epoch")
                 : dataset.mode == DatasetMode::kEvaluate ? "evaluate, after every training epoch"
                                                          : "predict, after all training",
          .facts = {{"mode", ToString(dataset.mode)}, {"epochs", dataset.epochs}}};
}

/// The source of one dataset's records; there is one class per kind. The catalog calls the
/// functions in this order, from one thread: it checks the source, looks at it, and opens it. The
/// functions below "open" are const and thread-safe. Errors name the wrong part and say what to do;
/// they do not name the dataset.
class DatasetSource {
 public:
  virtual ~DatasetSource() = default;

  /// Checks the settings, without a look at the data.
  virtual absl::Status CheckSettings() const = 0;
  /// A quick look for people; it may estimate. The error names the dataset.
  virtual absl::StatusOr<SourcePreview> Preview() const = 0;

  /// Finds the data and checks that they are those with which the job began. Writes nothing but
  /// finished parts, if it may.
  virtual absl::Status Look(const LookOptions& options) = 0;
  /// Writes what Look has found, so that later looks compare with it. The source is open then.
  virtual absl::Status Keep() = 0;
  /// Opens it from the files of Keep, without a look at the data, which may be gone. kNotFound and
  /// kDataLoss: those files are missing or damaged. Writes nothing.
  virtual absl::Status OpenKept() = 0;

  // Open.

  /// How the dataset is cut into shards; no shards for a source that grows, which the core cuts.
  virtual std::shared_ptr<const ShardLayout> layout() const = 0;
  /// How the core cuts a source that grows while the job runs; none: the layout has all of it.
  virtual std::optional<StreamPlan> Growth() const { return std::nullopt; }
  /// What the journal compares on resume: the state belongs to these data.
  virtual std::string Fingerprint() const = 0;
  /// Adds to `work` where the records of a shard of the layout lie.
  virtual void Locate(std::span<const RecordRun> /*runs*/, ShardWork* /*work*/) const {}
  /// Tells a new session what it must know to read shards of the dataset.
  virtual void Introduce(HelloResponse* /*hello*/) const {}
  /// The follower of a source that grows; null: it does not grow.
  virtual absl::StatusOr<std::unique_ptr<SourceFollower>> Follow(FollowOptions) const {
    return nullptr;
  }
};

}  // namespace muster
