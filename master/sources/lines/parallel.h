#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace muster {

/// Told after each thing that is done, by any thread and at the same time by several: whoever does
/// it lives. May be empty.
using AliveFn = std::function<void()>;

/// `wanted` threads, 0: one per processor; never more than there are tasks, at least one.
inline uint32_t ThreadCount(uint32_t wanted, uint64_t tasks) {
  const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t threads = wanted > 0 ? wanted : processors;
  return static_cast<uint32_t>(std::clamp<uint64_t>(tasks, 1, threads));
}

/// Calls `work` for every number below `count`, on so many threads (ThreadCount), and returns when
/// all are done. `work` is called at the same time by several. `alive` is told of every number.
inline void ForEachInParallel(size_t count, uint32_t threads, absl::FunctionRef<void(size_t)> work,
                              const AliveFn& alive = {}) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> pool;
  for (uint32_t i = 0; i < ThreadCount(threads, count); ++i) {
    pool.emplace_back([&] {
      for (size_t at = next++; at < count; at = next++) {
        work(at);
        if (alive) alive();
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
}

}  // namespace muster
