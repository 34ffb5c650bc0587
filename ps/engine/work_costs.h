#pragma once

#include <cstdint>

namespace muster::ps {

/// The costs of finding a row, and of computing one initial value. They are the bytes that could be
/// moved in the same time.
inline constexpr uint64_t kFindWork = 128;
inline constexpr uint64_t kInitialValueWork = 32;
/// The cost of one entry of a list.
inline constexpr uint64_t kListWork = 16;

}  // namespace muster::ps
