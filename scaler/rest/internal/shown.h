#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"

namespace muster::scaler::rest {

/// What an error repeats of a wrong value.
inline std::string Shown(std::string_view value) {
  constexpr size_t kBytesMax = 100;
  return Excerpt(value, kBytesMax);
}

}  // namespace muster::scaler::rest
