#include "net/ring.h"

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/random.h"
#include "net/ring_memory.h"
#include "tests/support/status_matchers.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr size_t kBytes = RingMemory::kRingBytesMin;

class RingTest : public ::testing::Test {
 protected:
  void Write(std::string_view text) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::span<std::byte> room, writer_.Room());
    ASSERT_GE(room.size(), text.size());
    std::memcpy(room.data(), text.data(), text.size());
    woken_ = writer_.Publish(text.size());
  }
  std::string Read(size_t bytes) {
    const std::span<const std::byte> there = reader_.Bytes().value();
    EXPECT_GE(there.size(), bytes);
    std::string text(reinterpret_cast<const char*>(there.data()), bytes);
    reader_.Pass(bytes);
    woken_ = reader_.GiveBack(reader_.passed());
    return text;
  }

  RingMemory memory_ = RingMemory::Make(kBytes).value();
  RingWriter writer_{memory_.makers()};
  RingReader reader_{memory_.makers()};
  RingControl& control_ = *memory_.makers().control;
  bool woken_ = false;
};

TEST_F(RingTest, WhatIsWrittenIsReadInOrderAndInOnePiece) {
  EXPECT_TRUE(reader_.Bytes()->empty());
  EXPECT_EQ(writer_.Room()->size(), kBytes);
  const std::string most(kBytes - 3, 'a');
  Write(most);
  EXPECT_EQ(writer_.Room()->size(), 3u);
  EXPECT_EQ(Read(most.size()), most);
  Write("over the end");
  EXPECT_EQ(Read(12), "over the end");
  EXPECT_EQ(writer_.Room()->size(), kBytes);
}

TEST_F(RingTest, WhatIsPassedIsNotWrittenOverBeforeItIsGivenBack) {
  Write(std::string(kBytes, 'a'));
  ASSERT_EQ(reader_.Bytes()->size(), kBytes);
  reader_.Pass(kBytes / 2);
  EXPECT_EQ(writer_.Room()->size(), 0u);
  EXPECT_FALSE(reader_.GiveBack(10));
  EXPECT_EQ(writer_.Room()->size(), 10u);
}

TEST_F(RingTest, WhoSleepsIsWokenOnce) {
  Write("awake");
  EXPECT_FALSE(woken_);
  EXPECT_EQ(Read(5), "awake");
  EXPECT_TRUE(*reader_.Sleep());
  Write("x");
  EXPECT_TRUE(woken_);
  Write(std::string(kBytes - 1, 'y'));
  EXPECT_FALSE(woken_);
  EXPECT_TRUE(*writer_.Sleep());
  Read(1);
  EXPECT_TRUE(woken_);
  Read(1);
  EXPECT_FALSE(woken_);
}

TEST_F(RingTest, NobodySleepsOverWhatIsThere) {
  Write("x");
  EXPECT_FALSE(*reader_.Sleep());
  EXPECT_FALSE(*writer_.Sleep());
  Read(1);
  EXPECT_FALSE(woken_) << "the writer does not sleep";
  Write("y");
  EXPECT_FALSE(woken_) << "the reader does not sleep";
}

TEST_F(RingTest, ImpossibleCountsOfThePeerAreErrors) {
  Write(std::string(1000, 'a'));
  Read(400);
  for (const uint64_t written : std::vector<uint64_t>{0, 399, 999, 401 + kBytes, ~0ull}) {
    control_.written = written;
    EXPECT_THAT(reader_.Bytes(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("written")));
    EXPECT_THAT(reader_.Sleep(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("written")));
  }
  control_.written = 1000;
  EXPECT_TRUE(reader_.Bytes().ok());
  EXPECT_TRUE(writer_.Room().ok());
  for (const uint64_t read : std::vector<uint64_t>{0, 399, 1001, ~0ull}) {
    control_.read = read;
    EXPECT_THAT(writer_.Room(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("read")));
    EXPECT_THAT(writer_.Sleep(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("read")));
  }
}

TEST_F(RingTest, TheLastPossibleCountsAreNoErrors) {
  Write(std::string(1000, 'a'));
  Read(400);
  control_.written = 400 + kBytes;
  EXPECT_EQ(reader_.Bytes()->size(), kBytes);
  control_.read = 1000;
  EXPECT_EQ(writer_.Room()->size(), kBytes);
  control_.read = 999;
  EXPECT_THAT(writer_.Room(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("between 1000 and")))
      << "a count that goes back";
}

TEST_F(RingTest, WhatIsPassedButNotGivenBackLeavesNoMoreRoom) {
  Write(std::string(1000, 'a'));
  ASSERT_EQ(reader_.Bytes()->size(), 1000u);
  reader_.Pass(400);
  control_.written = kBytes;
  EXPECT_EQ(reader_.Bytes()->size(), kBytes - 400);
  control_.written = kBytes + 1;
  EXPECT_THAT(reader_.Bytes(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("written")));
}

TEST_F(RingTest, OwnCountsAreNeverTakenFromTheMemory) {
  Write("first");
  control_.written = 3;  // the peer of the writer may write there, too
  Write("second");
  EXPECT_EQ(Read(11), "firstsecond");
}

TEST_F(RingTest, TwoThreadsLoseNothing) {
  constexpr size_t kTotal = 8u << 20;
  std::thread other([&] {
    Rng rng(1);
    size_t sent = 0;
    while (sent < kTotal) {
      const std::span<std::byte> room = writer_.Room().value();
      const size_t count = std::min({room.size(), kTotal - sent, size_t{1} + rng.Below(9000)});
      for (size_t i = 0; i < count; ++i) room[i] = static_cast<std::byte>((sent + i) * 7);
      static_cast<void>(writer_.Publish(count));
      sent += count;
      if (count == 0) std::this_thread::yield();
    }
  });
  size_t got = 0, wrong = 0;
  while (got < kTotal) {
    const std::span<const std::byte> bytes = reader_.Bytes().value();
    for (size_t i = 0; i < bytes.size(); ++i) {
      wrong += bytes[i] != static_cast<std::byte>((got + i) * 7);
    }
    got += bytes.size();
    reader_.Pass(bytes.size());
    static_cast<void>(reader_.GiveBack(reader_.passed()));
    if (bytes.empty()) std::this_thread::yield();
  }
  other.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace muster::net
