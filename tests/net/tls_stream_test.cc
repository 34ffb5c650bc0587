#include "net/tls_stream.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include "net/tls_engine.h"
#include "tests/net/stream_fixture.h"
#include "tests/net/tls_fixture.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using stream_test::Into;
using stream_test::Results;
using ::testing::HasSubstr;
using tls_test::Certificates;

constexpr size_t kStep = 1u << 20;

/// Both ends of a TCP connection.
std::pair<Socket, Socket> TcpPair(asio::io_context* io) {
  using asio::ip::tcp;
  tcp::acceptor acceptor(*io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::socket here(*io);
  here.connect(acceptor.local_endpoint());
  return {Socket(std::move(here)), Socket(acceptor.accept())};
}

void Await(asio::io_context* io, const Results& results, size_t count) {
  if (io->stopped()) io->restart();
  while (results.size() < count) MUSTER_CHECK(io->run_one() > 0);
}

using Pair = std::pair<std::unique_ptr<TlsStream>, std::unique_ptr<TlsStream>>;

Pair Greeted(asio::io_context* io, Socket client, Socket server) {
  const Certificates certificates;
  Pair pair{std::make_unique<TlsStream>(std::move(client), certificates.Client().get(),
                                        TlsStream::Side::kClient, kStep),
            std::make_unique<TlsStream>(std::move(server), certificates.Server().get(),
                                        TlsStream::Side::kServer, kStep)};
  Results results;
  pair.first->Handshake(Into(&results));
  pair.second->Handshake(Into(&results));
  MUSTER_CHECK(results.empty());
  Await(io, results, 2);
  for (const auto& result : results) MUSTER_CHECK(!result.error);
  return pair;
}

/// Two ends after their handshake, on UNIX sockets, whose buffers are small.
struct TlsPair {
  static std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> Make(
      asio::io_context* io) {
    auto [here, there] = stream_test::ConnectedSockets(io);
    return Greeted(io, std::move(here), std::move(there));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Tls, ByteStreamTest, TlsPair);

struct TlsTcpPair {
  static std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> Make(
      asio::io_context* io) {
    auto [here, there] = TcpPair(io);
    return Greeted(io, std::move(here), std::move(there));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(TlsOverTcp, ByteStreamTest, TlsTcpPair);

class TlsStreamTest : public ::testing::Test {
 protected:
  /// An end whose peer is a bare socket, so that a test can send anything.
  void AgainstASocket(TlsStream::Side side) {
    auto [here, there] = TcpPair(&io_);
    const auto context =
        side == TlsStream::Side::kServer ? certificates_.Server() : certificates_.Client();
    stream_ = std::make_unique<TlsStream>(std::move(here), context.get(), side, kStep);
    peer_.emplace(std::move(there));
  }
  void AwaitOne(const Results& results) { Await(&io_, results, 1); }

  Certificates certificates_;
  asio::io_context io_{1};
  std::unique_ptr<TlsStream> stream_;
  std::optional<Socket> peer_;
};

TEST_F(TlsStreamTest, AListOfManySmallBuffersIsOneRecord) {
  auto [client, server] = TcpPair(&io_);
  Pair pair = Greeted(&io_, std::move(client), std::move(server));
  const std::string text = stream_test::Pattern(10'000);
  std::vector<asio::const_buffer> list;
  for (size_t i = 0; i < text.size(); i += 10) list.emplace_back(text.data() + i, 10);
  Results wrote, read;
  std::string into(text.size() + 1, 0);
  pair.second->ReadSome(asio::buffer(into), Into(&read));
  pair.first->Write(std::move(list), Into(&wrote));
  AwaitOne(read);
  EXPECT_EQ(read[0].bytes, text.size());  // a read of some ends with a record
  EXPECT_EQ(into.substr(0, text.size()), text);
}

TEST_F(TlsStreamTest, ReadNowTakesWhatTheSocketHasBrought) {
  auto [client, server] = TcpPair(&io_);
  Pair pair = Greeted(&io_, std::move(client), std::move(server));
  Results wrote, read;
  std::string first(4, 0), rest(100, 0);
  EXPECT_EQ(pair.second->ReadNow(std::as_writable_bytes(std::span(rest))), 0u);
  pair.first->Write({asio::buffer("together", 8)}, Into(&wrote));
  AwaitOne(wrote);
  pair.second->ReadOne(asio::buffer(first), Into(&read));
  AwaitOne(read);
  EXPECT_EQ(first, "toge");
  EXPECT_EQ(pair.second->ReadNow(std::as_writable_bytes(std::span(rest))), 4u);
  EXPECT_EQ(rest.substr(0, 4), "ther");
  EXPECT_EQ(pair.second->bytes_moved(), 8u);
}

TEST_F(TlsStreamTest, AnEndInOrderIsNotATruncation) {
  auto [client, server] = TcpPair(&io_);
  Pair pair = Greeted(&io_, std::move(client), std::move(server));
  std::string into(1, 0);
  Results read;
  pair.first->Close();
  pair.second->ReadOne(asio::buffer(into), Into(&read));
  AwaitOne(read);
  EXPECT_EQ(read[0].error, asio::error::eof);
}

TEST_F(TlsStreamTest, AfterItsOwnEndItStillReads) {
  auto [client, server] = TcpPair(&io_);
  Pair pair = Greeted(&io_, std::move(client), std::move(server));
  std::string into(4, 0);
  Results read, wrote;
  pair.first->ShutdownSend();
  pair.second->ReadOne(asio::buffer(into), Into(&read));
  AwaitOne(read);
  EXPECT_EQ(read[0].error, asio::error::eof);
  pair.second->Write({asio::buffer("more", 4)}, Into(&wrote));
  pair.first->ReadOne(asio::buffer(into), Into(&read));
  Await(&io_, read, 2);
  EXPECT_FALSE(read[1].error) << read[1].error.message();
  EXPECT_EQ(into, "more");
}

TEST_F(TlsStreamTest, APeerWithoutTlsIsRefused) {
  AgainstASocket(TlsStream::Side::kServer);
  Results results;
  stream_->Handshake(Into(&results));
  const std::string plain = "MSTR\6 and so on, some frame without TLS";
  asio::write(*peer_, asio::buffer(plain));
  AwaitOne(results);
  EXPECT_TRUE(results[0].error);
  EXPECT_THAT(stream_->failure(), HasSubstr("speaks plain text"));
}

TEST_F(TlsStreamTest, AServerWithoutTlsIsRefused) {
  AgainstASocket(TlsStream::Side::kClient);
  Results results;
  stream_->Handshake(Into(&results));
  const std::string plain = "MSTR\6 and so on, some frame without TLS";
  asio::write(*peer_, asio::buffer(plain));
  AwaitOne(results);
  EXPECT_TRUE(results[0].error);
  EXPECT_THAT(stream_->failure(), HasSubstr("speaks plain text"));
}

TEST_F(TlsStreamTest, APeerThatStopsInTheHandshakeIsClosed) {
  AgainstASocket(TlsStream::Side::kServer);
  Results results;
  stream_->Handshake(Into(&results));
  TlsEngine half(certificates_.Client().get(), TlsEngine::Side::kClient);
  half.Handshake();
  asio::write(*peer_, asio::buffer(half.output().data(), half.output().size() / 2));
  std::array<char, 1> byte;
  while (io_.poll() > 0) {
  }
  EXPECT_TRUE(results.empty());
  stream_->Close();
  AwaitOne(results);
  EXPECT_EQ(results[0].error, asio::error::operation_aborted);
  EXPECT_FALSE(stream_->handshake_done());
  error_code error;
  peer_->read_some(asio::buffer(byte), error);
  EXPECT_TRUE(error);
}

TEST_F(TlsStreamTest, BothSidesLearnThatACertificateIsRefused) {
  auto [here, there] = TcpPair(&io_);
  TlsStream client(std::move(here), certificates_.Client(Role::kOperator).get(),
                   TlsStream::Side::kClient, kStep);
  TlsStream server(std::move(there), certificates_.Server().get(), TlsStream::Side::kServer, kStep);
  Results client_results, server_results, wrote;
  server.Handshake(Into(&server_results));
  client.Handshake(Into(&client_results));
  AwaitOne(client_results);
  EXPECT_FALSE(client_results[0].error);  // the server has not judged yet
  AwaitOne(server_results);
  EXPECT_TRUE(server_results[0].error);
  EXPECT_THAT(server.failure(), HasSubstr("has the role operator"));
  server.Close();
  std::string into(1, 0);
  client.ReadOne(asio::buffer(into), Into(&client_results));
  Await(&io_, client_results, 2);
  EXPECT_TRUE(client_results[1].error);
  EXPECT_THAT(client.failure(), HasSubstr("the peer refuses our certificate"));
}

TEST_F(TlsStreamTest, AFailedWriteFindsTheReason) {
  auto [here, there] = TcpPair(&io_);
  TlsStream client(std::move(here), certificates_.Client(Role::kOperator).get(),
                   TlsStream::Side::kClient, kStep);
  auto server = std::make_unique<TlsStream>(std::move(there), certificates_.Server().get(),
                                            TlsStream::Side::kServer, kStep);
  Results client_results, server_results;
  server->Handshake(Into(&server_results));
  client.Handshake(Into(&client_results));
  AwaitOne(client_results);
  AwaitOne(server_results);
  server.reset();
  // The first write may be accepted; its answer is the reset.
  for (size_t i = 1; i < 100 && (i == 1 || !client_results.back().error); ++i) {
    client.Write({asio::buffer("frame", 5)}, Into(&client_results));
    Await(&io_, client_results, i + 1);
  }
  EXPECT_TRUE(client_results.back().error);
  EXPECT_THAT(client.failure(), HasSubstr("the peer refuses our certificate"));
}

/// A handshake by hand, so that the test has the socket afterwards.
class TlsStreamDamageTest : public TlsStreamTest {
 protected:
  void ShakeHands() {
    AgainstASocket(TlsStream::Side::kServer);
    engine_ = std::make_unique<TlsEngine>(certificates_.Client().get(), TlsEngine::Side::kClient);
    Results results;
    stream_->Handshake(Into(&results));
    while (results.empty()) {
      engine_->Handshake();
      Send(engine_->output().size());
      while (io_.poll() > 0) {
      }
      if (!results.empty()) break;
      peer_->non_blocking(true);
      error_code error;
      const size_t bytes =
          peer_->read_some(asio::buffer(engine_->Room().data(), engine_->Room().size()), error);
      engine_->Received(bytes);
    }
    ASSERT_FALSE(results[0].error);
    peer_->non_blocking(false);
  }
  void Send(size_t bytes) {
    asio::write(*peer_, asio::buffer(engine_->output().data(), bytes));
    engine_->Sent(bytes);
  }

  std::unique_ptr<TlsEngine> engine_;
  std::string into_ = std::string(16, 0);
};

TEST_F(TlsStreamDamageTest, GarbageInTheMiddleIsFound) {
  ShakeHands();
  Results results;
  ASSERT_TRUE(engine_->Write(std::as_bytes(std::span("sixteen bytes..", 16))));
  Send(engine_->output().size());
  asio::write(*peer_, asio::buffer("\x17\x03\x03\x00\x20 thirty-two bytes without a sense.", 40));
  stream_->ReadOne(asio::buffer(into_), Into(&results));
  AwaitOne(results);
  EXPECT_FALSE(results[0].error);
  stream_->ReadOne(asio::buffer(into_), Into(&results));
  Await(&io_, results, 2);
  EXPECT_TRUE(results[1].error);
  EXPECT_THAT(stream_->failure(), Not(::testing::IsEmpty()));
}

TEST_F(TlsStreamDamageTest, ATruncationIsAnError) {
  ShakeHands();
  Results results;
  ASSERT_TRUE(engine_->Write(std::as_bytes(std::span("sixteen bytes..", 16))));
  Send(engine_->output().size() - 1);
  peer_.reset();
  stream_->ReadOne(asio::buffer(into_), Into(&results));
  AwaitOne(results);
  EXPECT_EQ(results[0].error, asio::ssl::error::stream_truncated);
  EXPECT_EQ(results[0].bytes, 0u);
  EXPECT_EQ(stream_->failure(), "");
}

}  // namespace
}  // namespace muster::net
