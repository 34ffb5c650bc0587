#pragma once

#include <cstdint>

namespace muster::ps {

/// What finding a row costs, and computing one initial value, in bytes that could be moved instead.
inline constexpr uint64_t kFindWork = 128;
inline constexpr uint64_t kInitialValueWork = 32;
/// Of an entry of a list.
inline constexpr uint64_t kListWork = 16;

}  // namespace muster::ps
