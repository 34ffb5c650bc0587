#include "worker_sdk/member/step_reader.h"

#include <chrono>
#include <utility>

#include "base/status.h"

namespace muster::internal {
namespace {

/// To wake another thread takes nearly as long.
constexpr std::chrono::microseconds kQuickRead{100};

}  // namespace

absl::StatusOr<StepReader::Records> StepReader::Read(const ShardWork& work) {
  if (newest_.has_value() && newest_work_ == work) return *newest_;
  newest_.reset();
  {
    MutexLock lock(&mutex_);
    if (ahead_.has_value() && ahead_work_ == work) newest_ = std::exchange(ahead_, std::nullopt);
  }
  newest_work_ = work;
  if (newest_.has_value()) return *newest_;
  MUSTER_ASSIGN_OR_RETURN(newest_, ReadTimed(work));
  return *newest_;
}

bool StepReader::WantsAhead(const std::optional<ShardWork>& ahead) const {
  MutexLock lock(&mutex_);
  return slow_ && ahead.has_value() && !ahead->stream.has_value() && *ahead != ahead_work_;
}

void StepReader::ReadAhead(const ShardWork& work) {
  {
    MutexLock lock(&mutex_);
    ahead_work_ = work;
    ahead_.reset();
  }
  const absl::StatusOr<Records> read = ReadTimed(work);
  MutexLock lock(&mutex_);
  if (read.ok()) ahead_ = *read;
}

absl::StatusOr<StepReader::Records> StepReader::ReadTimed(const ShardWork& work) {
  const TimePoint began = clock_.Now();
  absl::StatusOr<Records> read = read_(work);
  const bool slow = clock_.Now() - began > kQuickRead;
  MutexLock lock(&mutex_);
  slow_ = slow;
  return read;
}

}  // namespace muster::internal
