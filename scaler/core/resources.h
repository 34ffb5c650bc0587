#pragma once

#include <cstdint>
#include <string>

namespace muster::scaler {

/// What a node may use. 0 = not limited, each for itself.
struct Resources {
  double cpus = 0;  // cores
  uint64_t memory_bytes = 0;
  friend bool operator==(const Resources&, const Resources&) = default;
};
std::string ToString(const Resources& resources);  // "0.5 cores, 512 MiB"
/// "512 MiB", "1.5 GiB".
std::string BytesText(uint64_t bytes);

}  // namespace muster::scaler
