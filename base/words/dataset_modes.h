#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/words/types.h"

namespace muster {

/// The text of each mode of a dataset, in the order of DatasetMode.
inline constexpr std::initializer_list<const char*> kDatasetModes = {
    ToString(DatasetMode::kTrain), ToString(DatasetMode::kEvaluate),
    ToString(DatasetMode::kPredict)};

/// The mode with this text. None: it is no mode.
constexpr std::optional<DatasetMode> DatasetModeOf(std::string_view text) {
  uint8_t number = 0;
  for (const std::string_view mode : kDatasetModes) {
    if (mode == text) return static_cast<DatasetMode>(number);
    ++number;
  }
  return std::nullopt;
}

}  // namespace muster
