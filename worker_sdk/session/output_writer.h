#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "store/object_store.h"

namespace muster::internal {

/// Publishes the outputs of predict shards. Whatever is killed and however often a shard runs, its
/// outputs appear once and as a whole: an object that is there is never replaced, so the first run
/// that is complete counts. Thread-safe.
class OutputWriter {
 public:
  /// The object that says which job's outputs a place has.
  static constexpr std::string_view kOwner = "muster-job";

  explicit OutputWriter(std::string job_id) : job_id_(std::move(job_id)) {}

  /// Publishes an object, and returns when it is durable; OK also if another run of the shard has
  /// published it before. `place`: a folder, or "s3://...". Blocks, on a bucket for some seconds.
  ///
  /// kUnavailable: the place is away or busy, try again later. kFailedPrecondition: the place has
  /// outputs of another job.
  absl::Status Write(const std::string& place, const std::string& name, std::string_view bytes);

  /// Removes what killed writers have left unfinished in the places of this writer. Call it when no
  /// shard of the job is left: a writer that is still at work (its lease is lost) then fails.
  void RemoveUnfinished();

 private:
  absl::StatusOr<ObjectStore*> Open(const std::string& place);
  /// kFailedPrecondition if the place belongs to another job.
  absl::Status Claim(ObjectStore* store) const;

  const std::string job_id_;
  Mutex mutex_;
  /// By place. They are this job's.
  std::map<std::string, std::unique_ptr<ObjectStore>> stores_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::internal
