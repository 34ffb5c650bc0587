#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// What a process of a job is. The numbers are nobody's but this program's.
enum class NodeRole : uint8_t { kMaster, kServer, kWorker, kScaler };

/// "master", "ps", "worker", "scaler": as the master knows it.
inline std::string ToString(NodeRole role) {
  static constexpr const char* kNames[] = {"master", "ps", "worker", "scaler"};
  return kNames[static_cast<size_t>(role)];
}

}  // namespace muster
