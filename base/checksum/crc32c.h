#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster {

/// The CRC-32C (Castagnoli) of `bytes`, which follow other bytes whose CRC is `before`.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
inline uint32_t Crc32c(std::string_view text) {
  return Crc32c(std::as_bytes(std::span(text)));
}

/// The CRC-32C of two consecutive pieces, from the CRC of each. The second piece has `second_bytes`
/// bytes.
uint32_t JoinCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace muster
