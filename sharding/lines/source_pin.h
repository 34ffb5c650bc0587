#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// By what a source is recognised: a file of another size, or whose sampled blocks hash
/// differently, has changed and must be refused. A change outside the sample that keeps the size is
/// not seen; files up to kPinBlocksMax blocks are hashed whole.
struct SourcePin {
  uint64_t bytes = 0;
  uint64_t hash = 0;
  friend bool operator==(const SourcePin&, const SourcePin&) = default;
};

inline constexpr uint64_t kPinBlockBytes = 4096;
inline constexpr uint64_t kPinBlocksMax = 64;

struct PinBlock {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  friend bool operator==(const PinBlock&, const PinBlock&) = default;
};

/// The blocks of a file of `file_bytes` that are hashed: ascending, spread evenly, first and last
/// among them. Fixed for ever: journals hold hashes made with it.
std::vector<PinBlock> PinBlocks(uint64_t file_bytes);

/// Reads into `buffer` from `offset` on, like pread: returns the bytes read, fewer than asked only
/// at the end of the file.
using ReadAt = std::function<absl::StatusOr<size_t>(uint64_t offset, std::span<char> buffer)>;

/// The pin of a file of `file_bytes` (from fstat), read through `read`. Errors are those of `read`;
/// kAborted when the file is shorter than it said. Fixed for ever.
absl::StatusOr<SourcePin> PinSource(uint64_t file_bytes, const ReadAt& read);

}  // namespace muster
