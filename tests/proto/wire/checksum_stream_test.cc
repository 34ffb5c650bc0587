#include "proto/wire/checksum_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "proto/wire/frame.h"

namespace muster::wire {
namespace {

TEST(ChecksumStreamTest, IsThatOfTheWholeHoweverItIsCut) {
  Rng rng(1);
  ChecksumStream stream;
  for (const size_t size : {0, 1, 100, 1000, 100'000}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
    const std::span<const std::byte> whole = bytes;
    stream.Reset();
    for (size_t at = 0; at < size;) {
      const size_t count = std::min<size_t>(size - at, 1 + rng.Below(size));
      stream.Add(whole.subspan(at, count));
      at += count;
    }
    EXPECT_EQ(stream.value(), ChecksumOf({&whole, 1})) << size;
  }
}

}  // namespace
}  // namespace muster::wire
