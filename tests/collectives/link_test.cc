#include "collectives/internal/link.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "base/check.h"
#include "collectives/internal/streams.h"
#include "net/socket_stream.h"
#include "tests/support/status_matchers.h"

namespace muster::collectives::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Takes every frame whose bucket is at most `most`, and says what has come.
struct Taker : Link::Handler {
  absl::StatusOr<std::optional<std::span<std::byte>>> OnHeader(const FrameHeader& header) override {
    if (header.bucket > most) return std::optional<std::span<std::byte>>();
    text.assign(header.payload_bytes, 0);
    return std::optional(std::as_writable_bytes(std::span(text)));
  }
  absl::Status OnPayload(const FrameHeader& header) override {
    come.push_back(std::to_string(header.bucket) + ":" + text);
    return text == "wrong" ? absl::InvalidArgumentError("it is wrong") : absl::OkStatus();
  }
  void OnEnded(std::string_view why) override { ended = why; }

  uint32_t most = 1000;
  std::string text;
  std::vector<std::string> come;
  std::string ended;
};

class LinkTest : public ::testing::TestWithParam<bool> {
 protected:
  LinkTest() {
    std::array<int, 2> fds;
    MUSTER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    const boost::asio::generic::stream_protocol protocol(AF_UNIX, 0);
    here_ = std::make_shared<Link>(
        std::make_unique<net::SocketStream>(net::Socket(io_, protocol, fds[0]), kStepBytes),
        GetParam(), &to_here_);
    raw_.emplace(io_, protocol, fds[1]);
  }
  ~LinkTest() override {
    if (here_ != nullptr) here_->Close(false);
    if (there_ != nullptr) there_->Close(false);
  }
  /// Puts a link to the other end.
  void Link2() {
    there_ = std::make_shared<Link>(
        std::make_unique<net::SocketStream>(std::move(*raw_), kStepBytes), GetParam(), &to_there_);
    there_->Start();
  }
  static FrameHeader Chunk(uint32_t bucket, std::string_view payload) {
    return {.kind = FrameKind::kChunk,
            .type = SumType::kBfloat16,
            .bucket = bucket,
            .elements = payload.size() / 2,
            .payload_bytes = payload.size()};
  }
  void Send(uint32_t bucket, const std::string& payload) {
    here_->Send(Chunk(bucket, payload), std::as_bytes(std::span(payload)), [this] { ++sent_; });
  }
  template <typename Done>
  void RunUntil(Done done) {
    if (io_.stopped()) io_.restart();
    while (!done()) MUSTER_CHECK(io_.run_one() > 0);
  }

  boost::asio::io_context io_{1};
  Taker to_here_, to_there_;
  std::shared_ptr<Link> here_, there_;
  std::optional<net::Socket> raw_;
  int sent_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Checked, LinkTest, ::testing::Bool());

TEST_P(LinkTest, FramesComeInTheirOrder) {
  Link2();
  const std::string one = "aa", two(1'000'000, 'b');
  Send(1, one);
  Send(2, two);
  Send(3, "");
  RunUntil([&] { return to_there_.come.size() == 3 && sent_ == 3; });
  EXPECT_THAT(to_there_.come, ElementsAre("1:aa", "2:" + two, "3:"));
}

TEST_P(LinkTest, ManyFramesAtOnceComeInTheirOrderAndAreSentOnce) {
  const std::string text = "aa";
  std::vector<std::string> expected;
  for (uint32_t bucket = 1; bucket <= 30; ++bucket) {
    Send(bucket, text);
    expected.push_back(std::to_string(bucket) + ":aa");
  }
  Link2();
  RunUntil([&] { return to_there_.come.size() == 30 && sent_ == 30; });
  while (io_.poll_one() > 0) continue;
  EXPECT_EQ(to_there_.come, expected);
  EXPECT_EQ(sent_, 30);
}

TEST_P(LinkTest, AnEndInTheMiddleOfAFrameIsNoFrame) {
  here_->Start();
  std::string payload = "12345678";
  std::array<std::byte, kFrameHeaderBytes> header;
  if (GetParam()) {
    EncodeCheckedFrameHeader(Chunk(1, payload), std::as_bytes(std::span(payload)), header);
  } else {
    EncodeFrameHeader(Chunk(1, payload), header);
  }
  ASSERT_EQ(raw_->send(boost::asio::buffer(header), 0), header.size());
  ASSERT_EQ(raw_->send(boost::asio::buffer(payload.data(), 7), 0), 7u);
  raw_->close();
  RunUntil([&] { return !to_here_.ended.empty(); });
  EXPECT_EQ(to_here_.ended, "End of file");
  EXPECT_TRUE(to_here_.come.empty());
  EXPECT_FALSE(here_->is_open());
}

TEST_P(LinkTest, WhoStandsHearsNothingOfALaterEndButNoFrameEither) {
  Link2();
  to_there_.most = 0;
  const std::string text = "aa";
  Send(1, text);
  RunUntil([&] { return sent_ == 1; });
  here_->Close(true);
  while (io_.poll_one() > 0) continue;
  EXPECT_TRUE(to_there_.come.empty());
  to_there_.most = 1;
  there_->Resume();
  RunUntil([&] { return !to_there_.ended.empty(); });
  EXPECT_EQ(to_there_.come.front(), "1:aa") << "what came before the end";
}

TEST_P(LinkTest, AFrameWithoutAPlaceWaits) {
  Link2();
  to_there_.most = 1;
  const std::string text = "aa";
  for (uint32_t bucket = 1; bucket <= 3; ++bucket) Send(bucket, text);
  RunUntil([&] { return to_there_.come.size() == 1 && sent_ == 3; });
  while (io_.poll_one() > 0) continue;
  EXPECT_THAT(to_there_.come, ElementsAre("1:aa"));
  to_there_.most = 3;
  there_->Resume();
  RunUntil([&] { return to_there_.come.size() == 3; });
  there_->Resume();  // it does not stand
}

/// Says where what has come was.
struct Lender : Taker {
  absl::StatusOr<std::optional<std::span<std::byte>>> OnHeader(const FrameHeader& header) override {
    if (link->Lends(header)) return std::optional(std::span<std::byte>());
    return Taker::OnHeader(header);
  }
  absl::Status OnLent(const FrameHeader& header, std::span<const std::byte> payload) override {
    text.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
    come.push_back("lent " + std::to_string(header.bucket));
    return text == "wrong!" ? absl::InvalidArgumentError("it is wrong") : absl::OkStatus();
  }
  Link* link = nullptr;
};

/// Two links that share memory.
class SharingLinkTest : public LinkTest {
 protected:
  ~SharingLinkTest() override {
    // While there is `sharing_`.
    for (std::shared_ptr<Link>* link : {&here_, &there_}) {
      if (*link != nullptr) (*link)->Close(false);
      *link = nullptr;
    }
    io_.restart();
    while (io_.poll() > 0) continue;
  }
  void ShareMemory() {
    here_->Close(false);
    std::array<int, 2> fds;
    MUSTER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    const boost::asio::generic::stream_protocol protocol(AF_UNIX, 0);
    net::Socket here(io_, protocol, fds[0]), there(io_, protocol, fds[1]);
    auto offered = std::make_unique<net::OfferedRings>(&sharing_.budget);
    const size_t bytes = offered->Make(kRing, "peer");
    net::RingMemory memory = offered->HandOver(fds[0]).value();
    here_ = std::make_shared<Link>(
        MadeRings(std::move(here), std::move(memory), std::move(offered), sharing_), GetParam(),
        &to_here_);
    OwnedFd received = net::ReceiveDescriptor(fds[1]).value();
    there_ = std::make_shared<Link>(
        std::make_unique<net::RingStream>(std::move(there),
                                          net::RingMemory::Open(std::move(received), bytes).value(),
                                          net::RingStream::Side::kOpenedIt, SpinOf(sharing_)),
        GetParam(), &lender_);
    lender_.link = there_.get();
    there_->Start();
  }

  static constexpr size_t kRing = net::RingBudget::kRingBytesMin;
  RingSharing sharing_{64u << 20};
  Lender lender_;
};
INSTANTIATE_TEST_SUITE_P(Checked, SharingLinkTest, ::testing::Bool());

TEST_P(SharingLinkTest, APayloadIsUsedWhereItIsUnlessItIsTooLongOrChecked) {
  ShareMemory();
  const std::string text = "12345678", longer(kRing, 'x');
  Send(1, text);
  Send(2, longer);
  Send(3, "");
  RunUntil([&] { return lender_.come.size() == 3; });
  EXPECT_THAT(lender_.come, ElementsAre(GetParam() ? "1:" + text : "lent 1", "2:" + longer, "3:"));
}

TEST_P(SharingLinkTest, AnErrorOverALentPayloadEndsIt) {
  if (GetParam()) GTEST_SKIP() << "nothing is lent";
  ShareMemory();
  here_->Start();
  const std::string text = "wrong!";
  Send(1, text);
  RunUntil([&] { return !lender_.ended.empty() && !to_here_.ended.empty(); });
  EXPECT_EQ(lender_.ended, "it is wrong");
}

TEST_P(SharingLinkTest, TheMemoryCountsUntilTheStreamIsGone) {
  ShareMemory();
  EXPECT_EQ(sharing_.budget.bytes(), 2 * kRing);
  here_->Close(false);
  RunUntil([&] { return !lender_.ended.empty(); });
  while (io_.poll() > 0) continue;
  here_ = std::exchange(there_, nullptr);  // which has no memory that counts
  EXPECT_EQ(sharing_.budget.bytes(), 0u);
}

TEST_P(LinkTest, AnErrorOfTheHandlerEndsIt) {
  Link2();
  here_->Start();
  const std::string text = "wrong!";
  to_there_.most = 5;
  here_->Send({.kind = FrameKind::kFetched, .bucket = 1}, std::as_bytes(std::span(text)).first(5),
              {});
  RunUntil([&] { return !to_there_.ended.empty() && !to_here_.ended.empty(); });
  EXPECT_EQ(to_there_.ended, "it is wrong");
  EXPECT_FALSE(there_->is_open());
  EXPECT_EQ(to_here_.ended, "End of file");
}

TEST_P(LinkTest, NothingComesAfterClose) {
  Link2();
  here_->Start();
  const std::string text(10'000'000, 'x');
  Send(1, text);
  here_->Close(false);
  Send(2, text);
  RunUntil([&] { return !to_there_.ended.empty(); });
  while (io_.poll_one() > 0) continue;
  EXPECT_EQ(sent_, 0);
  EXPECT_EQ(to_here_.ended, "");
}

TEST_P(LinkTest, ADamagedFrameIsNoticedIfFramesAreChecked) {
  here_->Start();
  std::string payload = "12345678";
  std::array<std::byte, kFrameHeaderBytes> header;
  if (GetParam()) {
    EncodeCheckedFrameHeader(Chunk(1, payload), std::as_bytes(std::span(payload)), header);
  } else {
    EncodeFrameHeader(Chunk(1, payload), header);
  }
  payload[3] = 'X';
  std::vector<char> frame(reinterpret_cast<const char*>(header.data()),
                          reinterpret_cast<const char*>(header.data()) + header.size());
  frame.insert(frame.end(), payload.begin(), payload.end());
  ASSERT_EQ(raw_->send(boost::asio::buffer(frame), 0), frame.size());
  RunUntil([&] { return !to_here_.ended.empty() || !to_here_.come.empty(); });
  EXPECT_EQ(to_here_.come.empty(), GetParam());
  EXPECT_THAT(to_here_.ended, HasSubstr(GetParam() ? "checksum is wrong" : ""));
}

TEST_P(LinkTest, ChecksumsMustBeAsAgreed) {
  here_->Start();
  std::array<std::byte, kFrameHeaderBytes> header;
  if (GetParam()) {
    EncodeFrameHeader(Chunk(1, ""), header);
  } else {
    EncodeCheckedFrameHeader(Chunk(1, ""), {}, header);
  }
  ASSERT_EQ(raw_->send(boost::asio::buffer(header), 0), header.size());
  RunUntil([&] { return !to_here_.ended.empty(); });
  EXPECT_THAT(to_here_.ended, HasSubstr("without the agreed kind of checksum"));
}

}  // namespace
}  // namespace muster::collectives::internal
