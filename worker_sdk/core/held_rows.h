#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::sdk {

/// 64 MiB. Above it, a loop requests the rows of only one minibatch ahead, and begins to gather
/// gradients only after the earlier ones are acknowledged, whatever the job says. With large
/// tensors, each of them is a copy of the model.
inline constexpr uint64_t kHeldFloatsMax = 16u << 20;

/// True if a worker may hold rows or gradients of so many minibatches; `floats` of them are known.
constexpr bool MayHold(size_t minibatches, uint64_t floats) {
  return minibatches <= 1 || floats <= kHeldFloatsMax;
}

}  // namespace muster::sdk
