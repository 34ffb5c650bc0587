#include "base/checksum/crc32c.h"

#include <array>
#include <cstring>

namespace muster {
namespace {

// The polynomial. As in all numbers here, the highest power is the lowest bit.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> kByteTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0u);
    table[i] = crc;
  }
  return table;
}();

/// a * b modulo the polynomial.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

/// x^(2^i).
constexpr std::array<uint32_t, 67> kSquares = [] {
  std::array<uint32_t, 67> table{};
  table[0] = 1u << 30;
  for (size_t i = 1; i < table.size(); ++i) table[i] = Multiply(table[i - 1], table[i - 1]);
  return table;
}();

/// x^(8 * bytes), which moves a CRC this many bytes further.
constexpr uint32_t Shift(uint64_t bytes) {
  uint32_t power = 1u << 31;
  for (size_t i = 3; bytes != 0; bytes >>= 1, ++i) {
    if ((bytes & 1) != 0) power = Multiply(power, kSquares[i]);
  }
  return power;
}

// The functions below pass the register on, which is the inverse of the CRC.
uint32_t AddByTable(uint32_t state, const std::byte* data, size_t bytes) {
  for (; bytes > 0; --bytes, ++data) {
    state = (state >> 8) ^ kByteTable[(state ^ static_cast<uint8_t>(*data)) & 0xff];
  }
  return state;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) inline uint64_t Add8(uint64_t state, const std::byte* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return __builtin_ia32_crc32di(state, word);
}

/// The instruction has a latency of three cycles, so this handles three pieces at a time.
__attribute__((target("sse4.2"))) uint32_t AddByInstruction(uint32_t state, const std::byte* data,
                                                            size_t bytes) {
  constexpr size_t kPiece = 8192;
  constexpr uint32_t kOnePiece = Shift(kPiece), kTwoPieces = Shift(2 * kPiece);
  for (; bytes >= 3 * kPiece; bytes -= 3 * kPiece, data += 3 * kPiece) {
    uint64_t a = state, b = 0, c = 0;
    for (size_t i = 0; i < kPiece; i += 8) {
      a = Add8(a, data + i);
      b = Add8(b, data + kPiece + i);
      c = Add8(c, data + 2 * kPiece + i);
    }
    state = Multiply(kTwoPieces, static_cast<uint32_t>(a)) ^
            Multiply(kOnePiece, static_cast<uint32_t>(b)) ^ static_cast<uint32_t>(c);
  }
  uint64_t rest = state;
  for (; bytes >= 8; bytes -= 8, data += 8) rest = Add8(rest, data);
  return AddByTable(static_cast<uint32_t>(rest), data, bytes);
}

uint32_t Add(uint32_t state, const std::byte* data, size_t bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? AddByInstruction(state, data, bytes) : AddByTable(state, data, bytes);
}

#else

uint32_t Add(uint32_t state, const std::byte* data, size_t bytes) {
  return AddByTable(state, data, bytes);
}

#endif

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before) {
  return ~Add(~before, bytes.data(), bytes.size());
}

uint32_t JoinCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return Multiply(Shift(second_bytes), first) ^ second;
}

}  // namespace muster
