#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

/// Identifies a source. A file of another size, or with other hashes of its sampled blocks, has
/// changed and must be refused. A change outside the sample that keeps the size is not detected;
/// files up to kPinBlocksMax blocks are hashed as a whole.
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

/// The blocks of a file of `file_bytes` that are hashed: ascending, spread evenly, including the
/// first and the last. It must never change, because journals hold hashes that were made with it.
std::vector<PinBlock> PinBlocks(uint64_t file_bytes);

/// Reads into `buffer` from `offset` on, like pread: returns the bytes read, fewer than asked only
/// at the end of the file.
using ReadAt = std::function<absl::StatusOr<size_t>(uint64_t offset, std::span<char> buffer)>;

/// The pin of a file of `file_bytes` (from fstat), read through `read`. Errors are those of `read`;
/// kAborted: the file is shorter than `file_bytes`. It must never change.
absl::StatusOr<SourcePin> PinSource(uint64_t file_bytes, const ReadAt& read);

}  // namespace muster
