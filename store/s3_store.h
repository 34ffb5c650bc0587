#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "store/names/place.h"
#include "store/names/retry.h"
#include "store/object_store.h"

namespace muster {

/// Limits of an S3 store. The defaults are for production, other values for tests.
struct S3Limits {
  /// Larger objects are sent in parts of this size, so that a broken connection costs little.
  uint64_t part_bytes = 16 << 20;
  /// An object is read in parts of this size.
  uint64_t read_part_bytes = 8 << 20;
  /// How many parts of one object are moved at a time.
  uint32_t parts_at_once = 4;
  uint32_t page_keys = 1000;  // keys in a page of a listing; S3 returns no more
  RetryLimits retries;
  std::chrono::milliseconds connect_timeout{3'000};
  std::chrono::seconds stall_timeout{10};
  /// The stall timeout for requests on which the service works before it answers: the end of an
  /// upload in parts, and a list of objects to delete.
  std::chrono::seconds work_timeout{600};
  uint32_t deletes_at_once = 1000;  // objects in a list to delete; S3 accepts no more
};

/// Objects in a bucket. If a busy or absent service does not answer a request, it is sent again
/// within `limits.retries`. `clock` must outlive it.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenS3Store(const S3Place& place,
                                                         const S3Limits& limits,
                                                         const Clock* clock);

}  // namespace muster
