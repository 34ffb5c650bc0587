#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace muster::ps {

/// Memory that is no longer needed. Freeing gigabytes takes long. So the engine only collects such
/// memory, and its owner frees it on another thread.
using Garbage = std::vector<std::shared_ptr<const void>>;

/// Moves `value` to the garbage.
template <typename T>
void Discard(T value, Garbage* garbage) {
  garbage->push_back(std::make_shared<T>(std::move(value)));
}

}  // namespace muster::ps
