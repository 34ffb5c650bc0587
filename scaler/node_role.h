#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// What a node of a job does. One word for all of scaler/: its launcher and its pure policies know
/// nothing else of each other.
enum class NodeRole : uint8_t { kMaster, kServer, kWorker };

/// "master", "ps", "worker".
inline std::string ToString(NodeRole role) {
  switch (role) {
    case NodeRole::kMaster:
      return "master";
    case NodeRole::kServer:
      return "ps";
    case NodeRole::kWorker:
      break;
  }
  return "worker";
}

}  // namespace muster
