#include "kubernetes/pods/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "kubernetes/model/json_access.h"

namespace muster::kubernetes {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 16> kSuffixes{{
    {"", 1.0},
    {"n", 1e-9},
    {"u", 1e-6},
    {"m", 1e-3},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"E", 1e18},
    {"Ki", 0x1p10},
    {"Mi", 0x1p20},
    {"Gi", 0x1p30},
    {"Ti", 0x1p40},
    {"Pi", 0x1p50},
    {"Ei", 0x1p60},
}};
/// Above this, a double cannot hold every whole number of bytes.
constexpr double kBytesMax = 0x1p53;

}  // namespace

std::optional<double> ParseQuantity(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& [suffix, factor] : kSuffixes) {
    if (rest == suffix) return number * factor;
  }
  return std::nullopt;
}

Resources ReadResources(const nlohmann::json& values) {
  Resources resources;
  resources.cpus = ParseQuantity(TextAt(values, {"cpu"})).value_or(0);
  const double bytes = ParseQuantity(TextAt(values, {"memory"})).value_or(0);
  if (bytes <= kBytesMax) resources.memory_bytes = static_cast<uint64_t>(bytes);
  return resources;
}

nlohmann::json ResourcesJson(const Resources& resources) {
  nlohmann::json values = nlohmann::json::object();
  if (resources.cpus > 0) {
    // A value just below a thousandth counts as that thousandth, because 0.3 * 1000 is not exactly
    // 300.
    const double thousandths = std::ceil(resources.cpus * 1000 - 1e-6);
    values["cpu"] = fmt::format("{}m", static_cast<uint64_t>(thousandths));
  }
  if (resources.memory_bytes > 0) values["memory"] = fmt::format("{}", resources.memory_bytes);
  return values;
}

}  // namespace muster::kubernetes
