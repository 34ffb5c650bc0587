#include "net/connector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <deque>
#include <optional>

#include "net/offered_rings.h"
#include "tests/net/tls_fixture.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint32_t kRing = RingBudget::kRingBytesMin;

/// A hello of one byte, which says whether memory is asked for. The header of an answer has its
/// kind and the size of its body.
class FakeGreeting : public Connector::Greeting {
 public:
  std::string Hello(bool /*same_machine*/, uint32_t ring_bytes) override {
    return ring_bytes > 0 ? "r" : "-";
  }
  absl::StatusOr<size_t> OnHeader(std::span<const std::byte, 64> header) override {
    kind_ = static_cast<char>(header[0]);
    if (kind_ == '?') return absl::InvalidArgumentError("it does not greet");
    return static_cast<size_t>(header[1]);
  }
  absl::StatusOr<uint32_t> OnAnswer(std::string_view body) override {
    if (kind_ == 'l') return absl::UnavailableError(std::string(body));
    if (kind_ == 'n') return absl::PermissionDeniedError(std::string(body));
    return kind_ == 'r' ? kRing : kind_ == 'R' ? 4 * kRing : 0;
  }
  void OnUselessRings() override { ++useless; }
  int useless = 0;

 private:
  char kind_ = 0;
};

std::string Answer(char kind, std::string_view body = "") {
  std::string frame(Connector::kHeaderBytes, '\0');
  frame[0] = kind;
  frame[1] = static_cast<char>(body.size());
  return frame.append(body);
}

/// Answers hellos at a path, each connection with the next of some answers. One that is empty
/// closes the connection, and "silence" leaves it open. Without a further answer, it stays silent.
class FakePeer {
 public:
  FakePeer(boost::asio::io_context* io, std::string path) : acceptor_(*io) {
    address = ListenUnix(path, &acceptor_).value();
    Accept();
  }
  std::string address;
  std::deque<std::string> answers;
  std::string after;  // what follows an answer: "memory", "byte", or nothing
  std::string hellos;
  RingBudget budget{64u << 20};
  std::optional<RingMemory> memory;

 private:
  void Accept() {
    acceptor_.async_accept([this](boost::system::error_code error, auto socket) {
      if (error) return;
      sockets_.push_back(std::make_unique<Socket>(std::move(socket)));
      Accept();
      Socket* const peer = sockets_.back().get();
      peer->async_read_some(boost::asio::buffer(hello_),
                            [this, peer](boost::system::error_code ended, size_t) {
                              if (!ended) Reply(peer);
                            });
    });
  }
  void Reply(Socket* peer) {
    hellos += hello_[0];
    if (answers.empty()) return;
    const std::string answer = answers.front();
    answers.pop_front();
    if (answer.empty()) return peer->close();
    peer->write_some(boost::asio::buffer(answer));
    if (answer[0] != 'r') return;
    if (after == "byte") peer->write_some(boost::asio::buffer("x", 1));
    if (after != "memory") return;
    OfferedRings rings(&budget);
    ASSERT_EQ(rings.Make(kRing, "peer"), kRing);
    memory = rings.HandOver(peer->native_handle()).value();
  }

  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::array<char, 1> hello_;
  std::vector<std::unique_ptr<Socket>> sockets_;
};

class ConnectorTest : public ::testing::Test {
 protected:
  FakePeer& Peer(const std::string& name) {
    return *peers_.emplace_back(std::make_unique<FakePeer>(&io_, dir_.File(name)));
  }
  void Start(std::vector<std::string> addresses, std::chrono::milliseconds timeout = {}) {
    options_.addresses = std::move(addresses);
    options_.timeout = timeout;
    if (timeout.count() > 0) options_.tries = Connector::Tries::kUntilTimeout;
    options_.greeting = greeting_;
    connector_ = std::make_shared<Connector>(
        io_.get_executor(), options_, [this](absl::StatusOr<Connector::Made> made) {
          ASSERT_FALSE(result_.has_value()) << "it is told once";
          result_ = std::move(made);
        });
    connector_->Start();
  }
  const absl::StatusOr<Connector::Made>& Result() {
    while (!result_.has_value()) io_.run_one();
    return *result_;
  }
  std::string Error() { return std::string(Result().status().message()); }

  static constexpr std::chrono::milliseconds kLong{60'000};
  const muster::testing::TempDir dir_;
  boost::asio::io_context io_;
  std::vector<std::unique_ptr<FakePeer>> peers_;
  std::shared_ptr<FakeGreeting> greeting_ = std::make_shared<FakeGreeting>();
  Connector::Options options_;
  std::shared_ptr<Connector> connector_;
  std::optional<absl::StatusOr<Connector::Made>> result_;
};

TEST_F(ConnectorTest, TheFirstAddressThatAcceptsIsTaken) {
  FakePeer& peer = Peer("a");
  peer.answers = {Answer('a', "body")};
  Start({"unix:/nowhere/at/all", "nonsense", "127.0.0.1:1", peer.address, Peer("b").address});
  ASSERT_TRUE(Result().ok());
  EXPECT_EQ(Result()->address, peer.address);
  EXPECT_TRUE(Result()->same_machine);
  auto& stream = static_cast<SocketStream&>(*Result()->stream);
  EXPECT_EQ(::fcntl(stream.socket().native_handle(), F_GETFD), FD_CLOEXEC)
      << "a child would inherit it";
}

TEST_F(ConnectorTest, AddressesOfNoUseAreSaid) {
  Start({"unix:/nowhere/at/all", "nonsense"});
  EXPECT_EQ(Error(),
            "it has no address that can be used here: unix:/nowhere/at/all: there is no such path "
            "here");
  result_.reset();
  Start({});
  EXPECT_EQ(Error(), "it has no address that can be used here");
  result_.reset();
  Start({"127.0.0.1:1", "unix:/nowhere/at/all"});
  EXPECT_THAT(Error(), StartsWith("127.0.0.1:1: "));
  EXPECT_FALSE(connector_->connected());
}

TEST_F(ConnectorTest, WhatFailsAfterTheConnectionIsFinalIfItIsTriedOnce) {
  FakePeer &peer = Peer("a"), &other = Peer("b");
  peer.answers = {Answer('?'), Answer('l', "not now"), "", Answer('R')};
  for (const std::string why : {"it does not greet", "not now", "End of file", "it shares rings"}) {
    result_.reset();
    Start({peer.address, other.address});
    EXPECT_THAT(Error(), StartsWith(peer.address + ": " + why));
    EXPECT_TRUE(connector_->connected());
    EXPECT_THAT(connector_->why(), StartsWith(why));
  }
  EXPECT_EQ(other.hellos, "");
}

TEST_F(ConnectorTest, OrTheAddressesAreTriedAgainUntilOneAnswers) {
  FakePeer &peer = Peer("a"), &other = Peer("b");
  peer.answers = {Answer('?'), Answer('l', "not now"), Answer('R'), Answer('a')};
  other.answers = {"", "", ""};
  Start({peer.address, other.address}, kLong);
  EXPECT_EQ(Result()->address, peer.address);
  EXPECT_EQ(peer.hellos, "----");
  EXPECT_EQ(other.hellos, "---");
}

TEST_F(ConnectorTest, ARefusalForGoodIsTheEnd) {
  FakePeer& peer = Peer("a");
  peer.answers = {Answer('n', "never")};
  Start({peer.address}, kLong);
  EXPECT_EQ(Error(), peer.address + ": never");
}

TEST_F(ConnectorTest, SilenceHasALimit) {
  const std::string address = Peer("a").address;
  Start({address}, std::chrono::milliseconds(30));
  EXPECT_EQ(Error(), address + ": it does not answer, for 30 ms");
}

TEST_F(ConnectorTest, AnAddressThatDoesNotAcceptLeavesTimeToTheNextOne) {
  // The kernel answers nothing more when the queue of a listener is full.
  boost::asio::ip::tcp::acceptor full(io_, {boost::asio::ip::address_v4::loopback(), 0}, false);
  ASSERT_EQ(::listen(full.native_handle(), 0), 0);
  boost::asio::ip::tcp::socket first(io_);
  first.connect(full.local_endpoint());
  FakePeer& peer = Peer("a");
  peer.answers = {Answer('a')};
  Start({"127.0.0.1:" + std::to_string(full.local_endpoint().port()), peer.address},
        std::chrono::milliseconds(2'000));
  ASSERT_TRUE(Result().ok());
  EXPECT_EQ(Result()->address, peer.address);
}

TEST_F(ConnectorTest, ItContinuesInTheMemoryOfThePeer) {
  FakePeer& peer = Peer("a");
  peer.answers = {Answer('r')};
  peer.after = "memory";
  options_.ring_bytes = kRing;
  Start({peer.address});
  ASSERT_TRUE(Result().ok());
  EXPECT_TRUE(Result()->stream->lossless());
  EXPECT_EQ(peer.hellos, "r");
  EXPECT_EQ(greeting_->useless, 0);
}

TEST_F(ConnectorTest, MemoryOfNoUseIsSaidOrNotAskedForAgain) {
  FakePeer& peer = Peer("a");
  peer.answers = {Answer('r'), Answer('r'), Answer('a')};
  peer.after = "byte";
  options_.ring_bytes = kRing;
  Start({peer.address, Peer("b").address});
  EXPECT_FALSE(Result().ok());
  EXPECT_EQ(greeting_->useless, 1);
  result_.reset();
  Start({peer.address}, kLong);
  ASSERT_TRUE(Result().ok());
  EXPECT_FALSE(Result()->stream->lossless());
  EXPECT_EQ(peer.hellos, "rr-");
}

TEST_F(ConnectorTest, AfterACancelNothingIsCalled) {
  FakePeer& peer = Peer("a");
  peer.answers = {Answer('?')};
  Start({peer.address}, kLong);
  while (peer.hellos.empty()) io_.run_one();
  connector_->Cancel();
  connector_->Cancel();
  io_.poll();
  EXPECT_FALSE(result_.has_value());
}

TEST_F(ConnectorTest, APeerThatDoesNotSpeakTlsIsNamed) {
  const tls_test::Certificates certificates;
  boost::asio::ip::tcp::acceptor plain(io_, {boost::asio::ip::address_v4::loopback(), 0});
  std::optional<Socket> accepted;
  plain.async_accept([&](boost::system::error_code, auto socket) {
    accepted.emplace(std::move(socket));
    accepted->write_some(boost::asio::buffer("220 smtp.example.org ready\r\n", 28));
  });
  const std::string address = "127.0.0.1:" + std::to_string(plain.local_endpoint().port());
  options_.tls = SourceOf(certificates.ClientContext());
  Start({address, Peer("a").address});
  EXPECT_THAT(Error(), ::testing::AllOf(StartsWith(address), HasSubstr("TLS")));
}

}  // namespace
}  // namespace muster::net
