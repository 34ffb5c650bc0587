#include "host/resources.h"

#include <fmt/format.h>

namespace muster {

std::string BytesText(uint64_t bytes) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const double value = static_cast<double>(bytes);
  // If it is a whole number of the smaller unit, it is printed exactly, because limits are whole
  // numbers.
  if (bytes >= kGiB && bytes % (kGiB / 16) == 0) return fmt::format("{:g} GiB", value / kGiB);
  if (bytes >= 10 * kGiB) return fmt::format("{:.1f} GiB", value / kGiB);
  if (bytes >= kMiB) return fmt::format("{:.0f} MiB", value / kMiB);
  constexpr uint64_t kKiB = uint64_t{1} << 10;
  if (bytes >= 10 * kKiB) return fmt::format("{:.0f} KiB", value / kKiB);
  return fmt::format("{} bytes", bytes);
}

std::string ToString(const Resources& resources) {
  const std::string cpus = resources.cpus > 0 ? fmt::format("{:.3g} core{}", resources.cpus,
                                                            resources.cpus == 1 ? "" : "s")
                                              : "any cores";
  const std::string memory =
      resources.memory_bytes > 0 ? BytesText(resources.memory_bytes) : "any memory";
  return cpus + ", " + memory;
}

}  // namespace muster
