#include "base/mapped_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace muster {
namespace {

/// The mappings of this process that are to be in huge pages have a flag for it.
bool AsksForHugePages(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      within = begin <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < end;
    } else if (within && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(MappedMemoryTest, LargeBlocksBeginWithAHugePageAndAreZero) {
  for (const size_t bytes :
       {size_t{4096}, kHugePageBytes - 4096, kHugePageBytes, 3 * kHugePageBytes + 4096}) {
    std::byte* const block = MapMemory(bytes);
    const size_t unit = bytes < kHugePageBytes ? 4096 : kHugePageBytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % unit, 0u);
    EXPECT_EQ(block[0], std::byte{0});
    EXPECT_EQ(block[bytes - 1], std::byte{0});
    EXPECT_EQ(AsksForHugePages(block), bytes >= kHugePageBytes) << bytes;
    std::memset(block, 1, bytes);
    UnmapMemory(block, bytes);
  }
}

}  // namespace
}  // namespace muster
