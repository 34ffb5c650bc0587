#include "host/node_name.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace muster {

std::string WorkerName(uint32_t number) {
  return fmt::format("worker-{}", number);
}

std::optional<uint32_t> WorkerNumber(const std::string& name) {
  constexpr std::string_view kPrefix = "worker-";
  uint32_t number = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  // Each number has exactly one name: only digits, no leading zeros, and not too large.
  if (WorkerName(number) != name) return std::nullopt;
  return number;
}

}  // namespace muster
