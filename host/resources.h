#pragma once

#include <chrono>
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

/// What a node uses, and used since it was started.
struct NodeUsage {
  std::chrono::microseconds cpu{0};        // running total
  std::chrono::microseconds throttled{0};  // running total
  /// Page cache that can be dropped is left out. Of a node without control group: what is resident,
  /// without files, and shared pages count for each process.
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;   // page cache included; 0 = not known
  uint64_t memory_limit_bytes = 0;  // in force; 0 = none
  /// PSI "some", 10 s; -1 = not known.
  double memory_pressure_percent = -1;
  double cpu_pressure_percent = -1;
};

}  // namespace muster::scaler
