#include "cli/show/json_output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "proto/fields/json.h"

namespace muster {

nlohmann::json NodesToJson(const JobStatus& status) {
  return {{"nodes", JsonFields::Value(status.nodes)}};
}

std::string WallToText(uint64_t wall_us) {
  const std::time_t seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), wall_us / 1000 % 1000);
}

}  // namespace muster
