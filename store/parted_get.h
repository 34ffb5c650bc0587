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
  absl::Status status;  // OK only if the answer has a status of success
  HttpAnswer answer;    // as far as there is one
  TryTime time = TryTime::kCounts;
};

/// Makes a request whose headers and callbacks are already set.
using TryPart = std::function<Tried(HttpRequest request)>;

/// Reads an object into the file `fd` with up to `at_once` requests at a time, as `plan` decides.
/// The calling thread makes one of them. If there is more than one part, other threads are started.
/// Bodies go to the file as they arrive, so each request needs memory for only one receive buffer.
absl::Status GetInParts(PartedRead* plan, int fd, uint32_t at_once, const TryPart& try_part,
                        const Clock* clock);

}  // namespace muster
