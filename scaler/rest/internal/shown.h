#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"

namespace muster::scaler::rest {

/// The part of a wrong value that an error message repeats.
inline std::string Shown(std::string_view value) {
  constexpr size_t kBytesMax = 100;
  return Excerpt(value, kBytesMax);
}

}  // namespace muster::scaler::rest
