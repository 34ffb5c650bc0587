#pragma once

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "worker_sdk/session/member_session.h"

namespace muster::internal {

/// The records of a group's steps: those of the newest step stay over its attempts, and the shard
/// that probably follows is read ahead if that is worth it. Thread-safe: one thread reads, and
/// another one reads ahead.
class StepReader {
 public:
  using Records = StepRecords;
  using ReadFunction = std::function<absl::StatusOr<Records>(const ShardWork&)>;
  explicit StepReader(ReadFunction read) : read_(std::move(read)) {}

  /// Blocks. Errors are those of the function.
  absl::StatusOr<Records> Read(const ShardWork& work);
  /// The shard is not of a topic, whose records may have to be awaited, has not been read ahead,
  /// and reading takes longer than to wake a thread for it.
  bool WantsAhead(const std::optional<ShardWork>& ahead) const;
  /// Reads it for the next Read. An error is left to that.
  void ReadAhead(const ShardWork& work);

 private:
  absl::StatusOr<Records> ReadTimed(const ShardWork& work);

  const ReadFunction read_;
  const SystemClock clock_;
  mutable Mutex mutex_;
  ShardWork ahead_work_ MUSTER_GUARDED_BY(mutex_);
  std::optional<Records> ahead_ MUSTER_GUARDED_BY(mutex_);
  bool slow_ MUSTER_GUARDED_BY(mutex_) = true;
  // Of the thread that reads.
  ShardWork newest_work_;
  std::optional<Records> newest_;
};

}  // namespace muster::internal
