#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace muster::kubernetes {

/// How long to wait before the next try: 200 ms after the first of `failures` in a row, twice as
/// long after each further one, 10 s at most, of that between half and all by `random`; never less
/// than the server asked for. The spread keeps the clients of a restarted API server apart. Pure.
std::chrono::milliseconds RetryWait(uint32_t failures,
                                    std::optional<std::chrono::seconds> retry_after,
                                    uint64_t random);

}  // namespace muster::kubernetes
