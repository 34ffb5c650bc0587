#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::codec_internal {

/// kInvalidArgument naming `field` when `count` is over `limit`.
inline absl::Status CheckCount(std::string_view field, int count, int limit) {
  if (count <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} entries are more than the limit of {}", field, count, limit));
}

/// As above, for the bytes of a text.
inline absl::Status CheckText(std::string_view field, const std::string& text, size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} bytes are more than the limit of {}", field, text.size(), limit));
}

/// As above, for an enum's number.
inline absl::Status CheckEnum(std::string_view field, uint32_t value, uint32_t largest) {
  if (value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: {} is not a known value (0 to {})", field, value, largest));
}

}  // namespace muster::codec_internal
