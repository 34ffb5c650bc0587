#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// An array in a NumPy `.npy` file, format version 1.0, C order, little-endian. Source: "NEP 1: A
/// Simple File Format for NumPy Arrays".
struct NpyHeader {
  std::string dtype;  // "<f4", "<u8"
  std::vector<uint64_t> shape;
  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

inline constexpr char kNpyFloat32[] = "<f4";
inline constexpr char kNpyUint64[] = "<u8";

/// The bytes before the array's data; a multiple of 64, so that mapped data is aligned.
std::string EncodeNpyHeader(const NpyHeader& header);

struct NpyArray {
  NpyHeader header;
  std::string_view data;  // into the file's bytes
};
/// Parses a whole file. kInvalidArgument: it is not a `.npy` file of version 1 or 2, is in Fortran
/// order, has another dtype than the two above, or its data is not as long as its shape says.
absl::StatusOr<NpyArray> DecodeNpy(std::string_view file);

}  // namespace muster
