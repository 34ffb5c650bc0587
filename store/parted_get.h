#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "base/clock.h"
#include "http/http_client.h"
#include "store/names/parted_read.h"

namespace muster {

inline constexpr char kRetryAfter[] = "Retry-After";

/// One try of a request.
struct Tried {
  absl::Status status;  // OK only for an answer with a status of success
  HttpAnswer answer;    // as far as there was one
  TryTime time = TryTime::kCounts;
};

/// Makes a request of which the headers and the callbacks are set.
using TryPart = std::function<Tried(HttpRequest request)>;

/// Reads an object into the file `fd` by up to `at_once` requests at a time, as `plan` decides. The
/// calling thread makes one of them, and others are started if there is more than one part. Bodies
/// go to the file as they come, so memory holds one receive buffer for each request.
absl::Status GetInParts(PartedRead* plan, int fd, uint32_t at_once, const TryPart& try_part,
                        const Clock* clock);

}  // namespace muster
