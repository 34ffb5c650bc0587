#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// The limits of a node. 0 means that a resource is not limited.
struct Resources {
  static constexpr const char* kName = "Resources";
  double cpus = 0;
  uint64_t memory_bytes = 0;
  static void Fields(auto& f, auto& r) {
    f(0, "cpus", r.cpus, {"Processors; 0: not limited"});
    f(0, "memory_bytes", r.memory_bytes, {"0: not limited"});
  }
  friend bool operator==(const Resources&, const Resources&) = default;
};
std::string ToString(const Resources& resources);  // "0.5 cores, 512 MiB"
/// "512 MiB", "1.5 GiB".
std::string BytesText(uint64_t bytes);

/// What a node uses, and has used since its start. The REST interface and its metrics show the
/// fields of the list. Optional fields are absent if they are not known.
struct NodeUsage {
  /// Running totals.
  std::optional<std::chrono::microseconds> cpu;
  std::chrono::microseconds throttled{0};
  /// Memory without page cache that the kernel can drop, because the node does not need it. Without
  /// a control group, it is resident memory without files, and shared pages count for each process.
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t memory_limit_bytes =
      0;  // in force; 0 = none. It is not in the list, because the node's limits say it
  std::optional<double> memory_pressure_percent;
  std::optional<double> cpu_pressure_percent;
  static void Fields(auto& f, auto& u) {
    f(0, "cpu_us", u.cpu, {"Processor time of this process"});
    f(0, "throttled_us", u.throttled, {"In which the CPU limit held this process up"});
    f(0, "memory_bytes", u.memory_bytes,
      {.says = "Now, without page cache that can be dropped", .gauge = true});
    f(0, "memory_peak_bytes", u.memory_peak_bytes,
      {.says = "Page cache included; 0: not known", .gauge = true});
    f(0, "memory_pressure_percent", u.memory_pressure_percent,
      {.says = "Of the newest 10 s, in which some thread waited for memory", .gauge = true});
    f(0, "cpu_pressure_percent", u.cpu_pressure_percent,
      {.says = "The same for the CPU", .gauge = true});
  }
};

}  // namespace muster
