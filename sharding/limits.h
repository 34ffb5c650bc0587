#pragma once

#include <cstdint>

/// Bounds of a job that whoever takes a number from people has in common.
namespace muster {

/// Workers of a job.
inline constexpr uint32_t kWorkersMax = 10'000;
/// Parameter servers of a job.
inline constexpr uint32_t kServerReplicasMax = 1'000;

}  // namespace muster
