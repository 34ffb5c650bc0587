#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/random.h"

namespace muster::kubernetes {

/// How long to wait before the next try: 200 ms after the first of `failures` in a row, 10 s at
/// most, spread; never less than the server asked for. Pure.
std::chrono::milliseconds RetryWait(uint32_t failures,
                                    std::optional<std::chrono::seconds> retry_after, Rng* random);

}  // namespace muster::kubernetes
