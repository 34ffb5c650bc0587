#include "net/ring_stream.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/net/ring_fixture.h"
#include "tests/net/stream_fixture.h"

namespace muster::net {
namespace {

using stream_test::Into;
using stream_test::kSmallRing;
using stream_test::Opened;
using stream_test::Results;
using ::testing::HasSubstr;

/// Two ends of shared memory, whose rings are smaller than what the tests send.
struct RingPair {
  static std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> Make(
      boost::asio::io_context* io) {
    auto [here, there] = stream_test::ConnectedSockets(io);
    RingMemory made = RingMemory::Make(kSmallRing).value();
    RingMemory opened = Opened(made);
    return {std::make_unique<RingStream>(std::move(here), std::move(made),
                                         RingStream::Side::kMadeIt, RingStream::Spin{}),
            std::make_unique<RingStream>(std::move(there), std::move(opened),
                                         RingStream::Side::kOpenedIt, RingStream::Spin{})};
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Ring, ByteStreamTest, RingPair);

TEST(RingStreamTest, WhatWasPutTogetherInTheRoomArrivesAmongWhatWasWritten) {
  boost::asio::io_context io{1};
  auto [here, there] = RingPair::Make(&io);
  std::string expected, into(4 * kSmallRing, 0);
  Results read, wrote;
  there->Read({boost::asio::buffer(into)}, Into(&read));
  for (size_t i = 0; expected.size() < into.size(); ++i) {
    const std::string piece = stream_test::Pattern(1 + i * 7919 % (kSmallRing / 2));
    const size_t bytes = std::min(piece.size(), into.size() - expected.size());
    expected.append(piece, 0, bytes);
    if (const std::span<std::byte> room = here->Room(); i % 3 != 0 && room.size() >= bytes) {
      std::memcpy(room.data(), piece.data(), bytes);
      EXPECT_EQ(here->Room().data(), room.data());
      here->Wrote(bytes);
      continue;
    }
    wrote.clear();
    here->Write({boost::asio::buffer(piece.data(), bytes)}, Into(&wrote));
    EXPECT_TRUE(wrote.empty());
    while (wrote.empty()) MUSTER_CHECK(io.run_one() > 0);
  }
  while (read.empty()) MUSTER_CHECK(io.run_one() > 0);
  EXPECT_EQ(into, expected);
  EXPECT_EQ(here->bytes_moved(), into.size());
}

TEST(RingStreamTest, ThereIsNoRoomWhileAWriteIsUnderWay) {
  boost::asio::io_context io{1};
  auto [here, there] = RingPair::Make(&io);
  const std::string more_than_fits(kSmallRing + 1, 'a');
  Results wrote;
  here->Write({boost::asio::buffer(more_than_fits)}, Into(&wrote));
  EXPECT_TRUE(here->Room().empty());
  here->Close();
  EXPECT_TRUE(here->Room().empty());
}

TEST(RingStreamTest, WhatIsBorrowedStaysUntilItIsGivenBack) {
  boost::asio::io_context io{1};
  auto [here, there] = RingPair::Make(&io);
  const size_t borrowed = there->lends();
  EXPECT_EQ(here->Room().size(), kSmallRing);
  const std::string text = stream_test::Pattern(borrowed);
  Results wrote, come;
  // All but one byte of it.
  here->Write({boost::asio::buffer(text.data(), borrowed - 1)}, Into(&wrote));
  there->Await(borrowed, Into(&come));
  while (wrote.empty()) MUSTER_CHECK(io.run_one() > 0);
  io.poll();
  EXPECT_TRUE(come.empty());
  here->Write({boost::asio::buffer(text.data() + borrowed - 1, 1)}, Into(&wrote));
  while (come.empty()) MUSTER_CHECK(io.run_one() > 0);
  EXPECT_FALSE(come[0].error);
  const std::span<std::byte> there_it_is = there->Borrow(borrowed);
  ASSERT_EQ(there_it_is.size(), borrowed);
  // Later bytes have only the rest of the ring, read or not.
  const std::string next(kSmallRing - borrowed, 'n');
  here->Write({boost::asio::buffer(next)}, Into(&wrote));
  std::string into(next.size(), 0);
  EXPECT_EQ(there->ReadNow(std::as_writable_bytes(std::span(into))), next.size());
  EXPECT_EQ(into, next);
  EXPECT_TRUE(here->Room().empty());
  EXPECT_EQ(std::memcmp(there_it_is.data(), text.data(), borrowed), 0);
  there->GiveBack();
  while (wrote.size() < 3) MUSTER_CHECK(io.run_one() > 0);
  EXPECT_EQ(here->Room().size(), kSmallRing);
  EXPECT_EQ(there->bytes_moved(), kSmallRing);
}

TEST(RingStreamTest, WhatHasNotComeIsNeitherReadNorBorrowed) {
  boost::asio::io_context io{1};
  auto [here, there] = RingPair::Make(&io);
  std::string into(10, 0);
  EXPECT_EQ(there->ReadNow(std::as_writable_bytes(std::span(into))), 0u);
  Results wrote, come;
  here->Write({boost::asio::buffer("ab", 2)}, Into(&wrote));
  EXPECT_TRUE(there->Borrow(3).empty());
  EXPECT_EQ(there->ReadNow(std::as_writable_bytes(std::span(into)).first(1)), 1u);
  EXPECT_EQ(there->Borrow(1)[0], std::byte{'b'});
  there->GiveBack();
  there->Await(1, Into(&come));
  here->Close();
  while (come.empty()) MUSTER_CHECK(io.run_one() > 0);
  EXPECT_TRUE(come[0].error);
}

/// The peer does as it likes.
class HostilePeerTest : public stream_test::RingEndTest {
 protected:
  std::string into_ = std::string(10, 0);
};

TEST_F(HostilePeerTest, ACountThatIsImpossibleEndsTheStream) {
  Results read;
  stream_->Read({boost::asio::buffer(into_)}, Into(&read));
  peer_->openers().control->written = kSmallRing + 1;
  Ring();
  Await(read);
  EXPECT_TRUE(read[0].error);
  EXPECT_THAT(std::string(stream_->failure()), HasSubstr("bytes were written"));
  EXPECT_FALSE(stream_->is_open());
}

TEST_F(HostilePeerTest, ACountThatIsImpossibleEndsAWrite) {
  Results wrote;
  const std::string sent(kSmallRing + 1, 'a');
  stream_->Write({boost::asio::buffer(sent)}, Into(&wrote));
  peer_->makers().control->read = ~0ull;
  Ring();
  Await(wrote);
  EXPECT_TRUE(wrote[0].error);
  EXPECT_THAT(std::string(stream_->failure()), HasSubstr("bytes were read"));
}

TEST_F(HostilePeerTest, ACountThatIsImpossibleLeavesNoRoom) {
  EXPECT_EQ(stream_->Room().size(), kSmallRing);
  peer_->makers().control->read = 1;
  EXPECT_TRUE(stream_->Room().empty());
  Results wrote;
  stream_->Write({boost::asio::buffer(into_)}, Into(&wrote));
  Await(wrote);
  EXPECT_TRUE(wrote[0].error);
  EXPECT_THAT(std::string(stream_->failure()), HasSubstr("bytes were read"));
}

TEST_F(HostilePeerTest, BellsWithoutAReasonAreHeardAndForgotten) {
  Results read;
  stream_->Read({boost::asio::buffer(into_)}, Into(&read));
  for (int i = 0; i < 1000; ++i) {
    Ring();
    io_.poll();
  }
  EXPECT_TRUE(read.empty());
  std::memcpy(peer_->openers().data, "0123456789", 10);
  peer_->openers().control->written = 10;
  Ring();
  Await(read);
  EXPECT_EQ(into_, "0123456789");
}

TEST_F(HostilePeerTest, WhoNeverSaysThatItSleepsIsNotWokenAndHarmsNobody) {
  Results wrote;
  const std::string sent(10, 'a');
  stream_->Write({boost::asio::buffer(sent)}, Into(&wrote));
  Await(wrote);
  char bell = 0;
  EXPECT_LT(::recv(sockets_.second.native_handle(), &bell, 1, MSG_DONTWAIT), 0);
}

/// A process that writes and reads without end, and is stopped or killed at any time.
class KilledPeerTest : public ::testing::Test {
 protected:
  KilledPeerTest() : sockets_(stream_test::ConnectedSockets(&io_)) {
    RingMemory made = RingMemory::Make(kSmallRing).value();
    child_ = ::fork();
    if (child_ == 0) Child(Opened(made));
    boost::system::error_code ignored;
    sockets_.second.close(ignored);
    stream_ = std::make_unique<RingStream>(std::move(sockets_.first), std::move(made),
                                           RingStream::Side::kMadeIt, RingStream::Spin{});
  }
  ~KilledPeerTest() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  /// Without Asio, whose loop belongs to the parent: it never sleeps, so it needs no bell.
  [[noreturn]] void Child(RingMemory memory) {
    RingWriter writer(memory.openers());
    RingReader reader(memory.makers());
    for (;;) {
      const auto room = writer.Room();
      const auto bytes = reader.Bytes();
      if (!room.ok() || !bytes.ok()) ::_exit(1);
      const bool reader_sleeps = writer.Publish(std::min<size_t>(room->size(), 1000));
      reader.Pass(bytes->size());
      const bool writer_sleeps = reader.GiveBack(reader.passed());
      if (reader_sleeps || writer_sleeps) {
        static_cast<void>(::send(sockets_.second.native_handle(), "x", 1, MSG_DONTWAIT));
      }
    }
  }
  void GoOn() {
    GoOnWriting();
    GoOnReading();
  }
  void GoOnWriting() {
    stream_->Write({boost::asio::buffer(sent_)}, [this](const auto& error, size_t /*bytes*/) {
      if (!error) return GoOnWriting();
      ++ended_;
    });
  }
  void GoOnReading() {
    stream_->Read({boost::asio::buffer(into_)}, [this](const auto& error, size_t /*bytes*/) {
      if (!error) return GoOnReading();
      ++ended_;
    });
  }

  boost::asio::io_context io_{1};
  std::pair<Socket, Socket> sockets_;
  pid_t child_ = -1;
  std::unique_ptr<RingStream> stream_;
  std::string sent_ = std::string(10'000, 'a'), into_ = std::string(10'000, 0);
  int ended_ = 0;
};

TEST_F(KilledPeerTest, AStoppedPeerBlocksNobodyAndAKilledOneIsSeen) {
  GoOn();
  while (stream_->bytes_moved() < (16u << 20)) MUSTER_CHECK(io_.run_one() > 0);
  ASSERT_EQ(::kill(child_, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
  while (io_.poll() > 0) {
  }  // comes to rest: nothing of it waits for the peer in a loop
  EXPECT_EQ(ended_, 0);
  ASSERT_EQ(::kill(child_, SIGCONT), 0);
  const uint64_t before = stream_->bytes_moved();
  while (stream_->bytes_moved() < before + (16u << 20)) MUSTER_CHECK(io_.run_one() > 0);
  ASSERT_EQ(::kill(child_, SIGKILL), 0);
  while (ended_ < 2) MUSTER_CHECK(io_.run_one() > 0);
  EXPECT_EQ(stream_->failure(), "");
}

}  // namespace
}  // namespace muster::net
