#include "proto/exported/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/status.h"

namespace muster {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kHeaderBytesMax = 1 << 16;
constexpr size_t kDimensionsMax = 32;

std::string ShapeText(const std::vector<uint64_t>& shape) {
  // Python writes a tuple of one with a comma.
  return shape.size() == 1 ? fmt::format("({},)", shape[0])
                           : fmt::format("({})", fmt::join(shape, ", "));
}

/// The text after `'name':` in the dictionary, without leading spaces; empty if it is not there.
std::string_view ValueOf(std::string_view dictionary, std::string_view name) {
  const size_t at = dictionary.find(fmt::format("'{}':", name));
  if (at == std::string_view::npos) return {};
  std::string_view value = dictionary.substr(at + name.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

absl::StatusOr<std::vector<uint64_t>> ParseShape(std::string_view text) {
  const absl::Status bad =
      absl::InvalidArgumentError(fmt::format("its shape does not parse: {}", text.substr(0, 60)));
  if (!text.starts_with('(')) return bad;
  const size_t end = text.find(')');
  if (end == std::string_view::npos) return bad;
  text = text.substr(1, end - 1);
  std::vector<uint64_t> shape;
  while (!text.empty()) {
    uint64_t extent = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || shape.size() == kDimensionsMax) return bad;
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(rest - text.data()));
    if (!text.empty() && text[0] != ',') return bad;
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
  }
  return shape;
}

}  // namespace

std::string EncodeNpyHeader(const NpyHeader& header) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                       header.dtype, ShapeText(header.shape));
  constexpr size_t kPrefixBytes = 10;  // magic, version, length
  const size_t used = kPrefixBytes + dictionary.size() + 1;
  dictionary.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  dictionary.push_back('\n');
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
          static_cast<char>(dictionary.size() >> 8)};
  return out + dictionary;
}

absl::StatusOr<NpyArray> DecodeNpy(std::string_view file) {
  if (!file.starts_with(kMagic) || file.size() < 12) {
    return absl::InvalidArgumentError("it is not a NumPy .npy file");
  }
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(file[at])); };
  const size_t version = byte(6);
  if (version != 1 && version != 2) {
    return absl::InvalidArgumentError(
        fmt::format("it has .npy format version {}; 1 and 2 are read", version));
  }
  const size_t prefix = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version == 2) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kHeaderBytesMax || prefix + length > file.size()) {
    return absl::InvalidArgumentError(fmt::format("its header of {} bytes is cut off", length));
  }
  const std::string_view dictionary = file.substr(prefix, length);
  NpyArray array;
  const std::string_view descr = ValueOf(dictionary, "descr");
  if (descr.size() < 5) return absl::InvalidArgumentError("its header names no dtype");
  array.header.dtype = std::string(descr.substr(1, 3));
  const bool is_uint64 = descr.substr(0, 5) == "'<u8'";
  if (!is_uint64 && descr.substr(0, 5) != "'<f4'") {
    return absl::InvalidArgumentError(
        fmt::format("its dtype is {}; '<f4' and '<u8' are read", descr.substr(0, 6)));
  }
  if (!ValueOf(dictionary, "fortran_order").starts_with("False")) {
    return absl::InvalidArgumentError("it is in Fortran order; save it in C order");
  }
  MUSTER_ASSIGN_OR_RETURN(array.header.shape, ParseShape(ValueOf(dictionary, "shape")));
  uint64_t bytes = is_uint64 ? sizeof(uint64_t) : sizeof(float);
  for (const uint64_t extent : array.header.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = UINT64_MAX;
    if (bytes == UINT64_MAX) break;
  }
  array.data = file.substr(prefix + length);
  if (array.data.size() != bytes) {
    return absl::InvalidArgumentError(
        fmt::format("its shape {} needs {} bytes of data, but it has {}",
                    ShapeText(array.header.shape), bytes, array.data.size()));
  }
  return array;
}

}  // namespace muster
