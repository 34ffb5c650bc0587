#pragma once

#include <time.h>

#include <chrono>

namespace muster {

/// CPU time of the calling thread, which other load on the machine disturbs less than wall time.
inline std::chrono::nanoseconds ThreadCpu() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}
inline double ThreadCpuSeconds() {
  return std::chrono::duration<double>(ThreadCpu()).count();
}

}  // namespace muster
