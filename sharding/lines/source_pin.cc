#include "sharding/lines/source_pin.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "base/status.h"

namespace muster {

std::vector<PinBlock> PinBlocks(uint64_t file_bytes) {
  const uint64_t blocks = file_bytes / kPinBlockBytes + (file_bytes % kPinBlockBytes != 0);
  const uint64_t sampled = std::min(blocks, kPinBlocksMax);
  std::vector<PinBlock> result;
  result.reserve(sampled);
  for (uint64_t i = 0; i < sampled; ++i) {
    const unsigned __int128 scaled = static_cast<unsigned __int128>(i) * (blocks - 1);
    const uint64_t block = sampled == 1 ? 0 : static_cast<uint64_t>(scaled / (sampled - 1));
    const uint64_t offset = block * kPinBlockBytes;
    result.push_back(
        {.offset = offset,
         .bytes = static_cast<uint32_t>(std::min<uint64_t>(kPinBlockBytes, file_bytes - offset))});
  }
  return result;
}

absl::StatusOr<SourcePin> PinSource(uint64_t file_bytes, const ReadAt& read) {
  // Every block is hashed with its offset as seed, so that swapped blocks are detected.
  uint64_t hash = Mix64(file_bytes);
  std::string buffer(kPinBlockBytes, '\0');
  for (const PinBlock& block : PinBlocks(file_bytes)) {
    MUSTER_ASSIGN_OR_RETURN(const size_t got,
                            read(block.offset, std::span<char>(buffer.data(), block.bytes)));
    if (got != block.bytes) {
      return absl::AbortedError(
          fmt::format("the file ends before its size of {} bytes: it is being "
                      "changed while it is read",
                      file_bytes));
    }
    hash = HashWords(hash, XXH3_64bits_withSeed(buffer.data(), block.bytes, block.offset));
  }
  return SourcePin{.bytes = file_bytes, .hash = hash};
}

}  // namespace muster
