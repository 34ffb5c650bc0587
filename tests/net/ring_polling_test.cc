// Readers of a ring that look for bytes instead of sleeping: who polls, and who spins on the loop.
#include <cstring>
#include <string>

#include "net/ring_stream.h"
#include "tests/net/ring_fixture.h"
#include "tests/support/fake_clock.h"

namespace muster::net {
namespace {

using boost::asio::buffer;
using std::chrono::microseconds;
using stream_test::Into;
using stream_test::Results;

/// The test writes the ring that the stream reads.
class WatchedRingTest : public stream_test::RingEndTest {
 protected:
  explicit WatchedRingTest(RingStream::Spin spin = {})
      : RingEndTest(spin), writer_(peer_->openers()) {}

  /// True: the stream is to be woken for it, which this does not do.
  bool Write(std::string_view text) {
    const std::span<std::byte> room = writer_.Room().value();
    std::memcpy(room.data(), text.data(), text.size());
    return writer_.Publish(text.size());
  }
  bool Sleeps() const { return peer_->openers().control->reader_sleeps.load() != 0; }
  void Turn() {
    io_.restart();
    io_.poll();
  }

  RingWriter writer_;
  std::string into_ = std::string(4, 0);
};

using RingPollingTest = WatchedRingTest;

TEST_F(RingPollingTest, WhoPollsNeedsNoBellAndIsCalledWithinPoll) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  EXPECT_TRUE(Sleeps());
  ASSERT_TRUE(stream_->BeginPolling());
  EXPECT_FALSE(Sleeps());
  EXPECT_FALSE(stream_->Poll());
  EXPECT_FALSE(Write("ab"));
  EXPECT_TRUE(stream_->Poll());
  EXPECT_TRUE(read.empty());
  EXPECT_FALSE(Write("cd"));
  EXPECT_TRUE(stream_->Poll());
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(into_, "abcd");
  EXPECT_FALSE(read[0].error);
  Turn();
  EXPECT_EQ(read.size(), 1u) << "it was called twice";
}

TEST_F(RingPollingTest, AHandlerThatReadsOnGetsTheRestInTheNextPolls) {
  std::string text;
  std::function<void()> go_on = [&] {
    stream_->Read({buffer(into_)}, [&](const auto& error, size_t bytes) {
      if (error) return;
      text.append(into_, 0, bytes);
      go_on();
    });
  };
  go_on();
  stream_->BeginPolling();
  Write("abcdefghijkl");
  EXPECT_TRUE(stream_->Poll());
  EXPECT_EQ(text, "abcd");
  while (stream_->Poll()) {
  }
  EXPECT_EQ(text, "abcdefghijkl");
  EXPECT_FALSE(stream_->Poll());
  stream_->Close();
  Turn();
}

TEST_F(RingPollingTest, AfterwardsTheLoopReadsAndSleeps) {
  Results first, second;
  stream_->BeginPolling();
  Write("abcd");
  stream_->Read({buffer(into_)}, Into(&first));
  stream_->EndPolling();
  stream_->EndPolling();
  EXPECT_TRUE(first.empty()) << "a handler came within a call that is not Poll";
  Await(first);
  stream_->Read({buffer(into_)}, Into(&second));
  EXPECT_TRUE(Sleeps());
  EXPECT_TRUE(Write("efgh"));
  Ring();
  Await(second);
  EXPECT_EQ(into_, "efgh");
}

TEST_F(RingPollingTest, WhatCameBeforeItsEndIsNotSleptOver) {
  Results read;
  stream_->BeginPolling();
  stream_->Read({buffer(into_)}, Into(&read));
  EXPECT_FALSE(Write("abcd"));  // no doorbell
  stream_->EndPolling();
  Await(read);
  EXPECT_EQ(into_, "abcd");
}

TEST_F(RingPollingTest, CloseEndsWhatIsPolledThroughTheLoop) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  stream_->BeginPolling();
  stream_->Close();
  EXPECT_FALSE(stream_->Poll());
  EXPECT_TRUE(read.empty());
  Await(read);
  EXPECT_TRUE(read[0].error);
}

TEST_F(RingPollingTest, AStreamThatGoesWhilePolledStillCallsItsHandlers) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  stream_->BeginPolling();
  Write("abcd");
  stream_.reset();
  Await(read);
}

TEST_F(RingPollingTest, APeerThatGoesIsNoticed) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  stream_->BeginPolling();
  boost::system::error_code ignored;
  sockets_.second.close(ignored);
  while (!stream_->Poll() && read.empty()) MUSTER_CHECK(io_.run_one() > 0);
  EXPECT_TRUE(read[0].error);
}

TEST_F(RingPollingTest, AnImpossibleCountEndsIt) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  stream_->BeginPolling();
  peer_->openers().control->written = stream_test::kSmallRing + 1;
  stream_->Poll();
  Await(read);
  EXPECT_TRUE(read[0].error);
  EXPECT_FALSE(stream_->is_open());
}

class RingSpinTest : public WatchedRingTest {
 protected:
  RingSpinTest() : WatchedRingTest({microseconds(40), &clock_}) {}
  testing::FakeClock clock_;
};

TEST_F(RingSpinTest, WhatComesSoonNeedsNoBell) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  for (int i = 0; i < 10; ++i) ASSERT_EQ(io_.run_one(), 1u);
  EXPECT_FALSE(Sleeps());
  clock_.Advance(microseconds(39));
  EXPECT_FALSE(Write("abcd"));
  Await(read);
  EXPECT_EQ(into_, "abcd");
}

TEST_F(RingSpinTest, WhatDoesNotComeSoonIsRungFor) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  clock_.Advance(microseconds(40));
  Turn();
  EXPECT_TRUE(Sleeps());
  EXPECT_TRUE(Write("abcd"));
  Ring();
  Await(read);
  EXPECT_EQ(into_, "abcd");
}

TEST_F(RingSpinTest, AfterALongWaitTheNextSpinIsShorter) {
  Results first, second;
  stream_->Read({buffer(into_)}, Into(&first));
  clock_.Advance(microseconds(41));
  Turn();
  Write("abcd");
  Ring();
  Await(first);
  stream_->Read({buffer(into_)}, Into(&second));
  clock_.Advance(microseconds(19));
  ASSERT_EQ(io_.run_one(), 1u);
  EXPECT_FALSE(Sleeps());
  clock_.Advance(microseconds(1));
  Turn();
  EXPECT_TRUE(Sleeps());
}

TEST_F(RingSpinTest, CloseEndsIt) {
  Results read;
  stream_->Read({buffer(into_)}, Into(&read));
  stream_->Close();
  Turn();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_TRUE(read[0].error);
}

}  // namespace
}  // namespace muster::net
