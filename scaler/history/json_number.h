#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace muster::scaler {

/// Returns the number in `json`, which must be whole and within the range of T. Otherwise it throws
/// nlohmann::json::type_error, as nlohmann's own get() does for other types. For a fraction or a
/// negative number, get() itself returns a wrong number or is undefined.
template <std::integral T>
T WholeNumber(const nlohmann::json& json) {
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (json.is_number_integer()) {
    const auto number = json.get<int64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  throw nlohmann::json::type_error::create(
      302,
      fmt::format("{} is no whole number from {} to {}", json.dump(), std::numeric_limits<T>::min(),
                  std::numeric_limits<T>::max()),
      &json);
}

}  // namespace muster::scaler
