#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::sdk {

/// 64 MiB. Beyond it a loop asks for the rows of only one minibatch ahead, and begins to gather the
/// gradients of the next one when those before are acknowledged, whatever the job says: with large
/// tensors each is a copy of the model.
inline constexpr uint64_t kHeldFloatsMax = 16u << 20;

/// Whether a worker may hold rows or gradients of so many minibatches, of which `floats` are known.
constexpr bool MayHold(size_t minibatches, uint64_t floats) {
  return minibatches <= 1 || floats <= kHeldFloatsMax;
}

}  // namespace muster::sdk
