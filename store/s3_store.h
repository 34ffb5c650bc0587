#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "store/names/place.h"
#include "store/names/retry.h"
#include "store/object_store.h"

namespace muster {

/// Bounds of an S3 store; the defaults are for use, others for tests.
struct S3Limits {
  /// A larger object is sent in parts of this size, so that a cut connection costs little.
  uint64_t part_bytes = 16 << 20;
  /// An object is read in parts of this size.
  uint64_t read_part_bytes = 8 << 20;
  /// Of one object.
  uint32_t parts_at_once = 4;
  uint32_t page_keys = 1000;  // of a listing; S3 gives no more
  RetryLimits retries;
  std::chrono::milliseconds connect_timeout{3'000};
  std::chrono::seconds stall_timeout{10};
  /// The same for requests that the service works on before it answers: the end of an upload in
  /// parts, and a list of objects to delete.
  std::chrono::seconds work_timeout{600};
  uint32_t deletes_at_once = 1000;  // of a list; S3 takes no more
};

/// Objects of a bucket. Requests that a busy or absent service does not answer are sent again
/// within `limits.retries`. `clock` must outlive it.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenS3Store(const S3Place& place,
                                                         const S3Limits& limits,
                                                         const Clock* clock);

}  // namespace muster
