#pragma once

#include <cstdint>

/// Limits of a job, shared by all code that reads numbers from users, and limits of one message.
namespace muster {

/// The most workers of a job.
inline constexpr uint32_t kWorkersMax = 10'000;
inline constexpr uint32_t kMinibatchesPerShardMax = 1'024;
/// The most parameter servers of a job.
inline constexpr uint32_t kServerReplicasMax = 1'000;

/// The most that one message of a peer may contain, in entries or bytes.
namespace most {
inline constexpr uint32_t kLeases = 100'000;
inline constexpr uint32_t kPartitions = 65'536;
inline constexpr uint32_t kServers = 4'096;
inline constexpr uint32_t kLanes = 256;
inline constexpr uint32_t kAddressesOfLane = 8;
inline constexpr uint32_t kTables = 4'096;
inline constexpr uint32_t kDimensions = 16;
inline constexpr uint32_t kFilesOfChain = 1'024;
inline constexpr uint32_t kRunsOfShard = 65'536;
inline constexpr uint32_t kRangesOfShard = 1'024;
inline constexpr uint32_t kMetricsOfShard = 256;
inline constexpr uint32_t kIntervals = 10'000'000;
inline constexpr uint32_t kNameBytes = 256;
inline constexpr uint32_t kMembers = 1'024;
inline constexpr uint32_t kAddressesOfMember = 8;
inline constexpr uint32_t kGroupTensors = 65'536;
}  // namespace most

}  // namespace muster
