#include "net/tls_engine.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/net/stream_fixture.h"
#include "tests/net/tls_fixture.h"

namespace muster::net {
namespace {

using Side = TlsEngine::Side;
using Step = TlsEngine::Step;
using ::testing::HasSubstr;
using tls_test::Certificates;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Carries what `from` has for its peer to `to`, in pieces of at most `piece` bytes.
void Carry(TlsEngine* from, TlsEngine* to, size_t piece = SIZE_MAX) {
  const std::span<const std::byte> output = from->output();
  const std::span<std::byte> room = to->Room();
  const size_t bytes = std::min({output.size(), room.size(), piece});
  std::copy_n(output.begin(), bytes, room.begin());
  to->Received(bytes);
  from->Sent(bytes);
}

std::string ReadAll(TlsEngine* engine, Step* end) {
  std::string all;
  while (true) {
    std::array<std::byte, 1000> part;
    size_t bytes = 0;
    *end = engine->Read(part, &bytes);
    if (*end != Step::kDone) return all;
    all.append(reinterpret_cast<const char*>(part.data()), bytes);
  }
}

class TlsEngineTest : public ::testing::Test {
 protected:
  /// Until both are done, or one has failed.
  void ShakeHands(size_t piece = SIZE_MAX) {
    for (int i = 0; i < 10'000; ++i) {
      const Step there = client_.Handshake();
      Carry(&client_, &server_, piece);
      const Step here = server_.Handshake();
      Carry(&server_, &client_, piece);
      if (here == Step::kFailed || there == Step::kFailed) return;
      if (client_.handshake_done() && server_.handshake_done()) return;
    }
    FAIL() << "the handshake does not end";
  }

  Certificates certificates_;
  TlsEngine client_{certificates_.Client().get(), Side::kClient};
  TlsEngine server_{certificates_.Server().get(), Side::kServer};
};

TEST_F(TlsEngineTest, WhatIsWrittenIsReadAlthoughItComesByteByByte) {
  ShakeHands(1);
  ASSERT_TRUE(client_.handshake_done() && server_.handshake_done());
  EXPECT_TRUE(server_.output().empty()) << "a ticket, which could reset the connection";
  const std::string sent = stream_test::Pattern(40'000);
  ASSERT_TRUE(client_.Write(BytesOf(sent)));
  EXPECT_THAT(
      std::string(reinterpret_cast<const char*>(client_.output().data()), client_.output().size()),
      Not(HasSubstr(sent.substr(0, 20))));
  std::string got;
  while (!client_.output().empty()) {
    Carry(&client_, &server_, 1);
    Step end;
    got += ReadAll(&server_, &end);
    ASSERT_EQ(end, Step::kNeedsBytes);
  }
  EXPECT_EQ(got, sent);
}

TEST_F(TlsEngineTest, AnEndIsTold) {
  ShakeHands();
  ASSERT_TRUE(client_.Write(BytesOf("last words")));
  client_.End();
  Carry(&client_, &server_);
  server_.ReceivedEnd();
  Step end;
  EXPECT_EQ(ReadAll(&server_, &end), "last words");
  EXPECT_EQ(end, Step::kEnded);
  // The other direction goes on.
  ASSERT_TRUE(server_.Write(BytesOf("answer")));
  Carry(&server_, &client_);
  EXPECT_EQ(ReadAll(&client_, &end), "answer");
}

TEST_F(TlsEngineTest, AnEndThatIsNotToldIsATruncation) {
  ShakeHands();
  ASSERT_TRUE(client_.Write(BytesOf("first half, ")));
  ASSERT_TRUE(client_.Write(BytesOf("second half")));
  Carry(&client_, &server_, client_.output().size() - 1);
  server_.ReceivedEnd();
  Step end;
  EXPECT_EQ(ReadAll(&server_, &end), "first half, ");
  EXPECT_EQ(end, Step::kTruncated);
  EXPECT_EQ(ReadAll(&server_, &end), "");
  EXPECT_EQ(end, Step::kTruncated);
  EXPECT_EQ(server_.failure(), "");
}

TEST_F(TlsEngineTest, EveryChangedBitIsFound) {
  for (size_t at = 0; at < 30; at += 3) {
    TlsEngine client(certificates_.Client().get(), Side::kClient);
    TlsEngine server(certificates_.Server().get(), Side::kServer);
    while (!client.handshake_done() || !server.handshake_done()) {
      client.Handshake();
      Carry(&client, &server);
      server.Handshake();
      Carry(&server, &client);
    }
    ASSERT_TRUE(client.Write(BytesOf("ten bytes.")));
    std::vector<std::byte> record(client.output().begin(), client.output().end());
    ASSERT_GT(record.size(), 30u);
    record[at] ^= std::byte{1};
    std::copy(record.begin(), record.end(), server.Room().begin());
    server.Received(record.size());
    server.ReceivedEnd();
    Step end;
    EXPECT_EQ(ReadAll(&server, &end), "") << at;
    EXPECT_TRUE(end == Step::kFailed || end == Step::kTruncated) << at;
  }
}

TEST_F(TlsEngineTest, AKeyEncryptsOnlySoMuch) {
  TlsEngine client(certificates_.Client().get(), Side::kClient,
                   TlsEngine::Options{.key_bytes_max = 2500});
  while (!server_.handshake_done()) {
    client.Handshake();
    Carry(&client, &server_);
    server_.Handshake();
    Carry(&server_, &client);
  }
  const std::string sent = stream_test::Pattern(1000);
  std::vector<size_t> sizes;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(client.Write(BytesOf(sent)));
    sizes.push_back(client.output().size());
    Carry(&client, &server_);
    Step end;
    ASSERT_EQ(ReadAll(&server_, &end), sent) << i;
  }
  // The message that changes the key comes before the third and the fifth thousand.
  EXPECT_EQ(sizes[0], sizes[1]);
  EXPECT_GT(sizes[2], sizes[1]);
  EXPECT_EQ(sizes[3], sizes[1]);
  EXPECT_GT(sizes[4], sizes[1]);
}

TEST_F(TlsEngineTest, PlainTextIsNoTls) {
  const std::string_view plain = "MSTR\6\0\1\0 a frame without TLS, long enough for a record";
  std::memcpy(server_.Room().data(), plain.data(), plain.size());
  server_.Received(plain.size());
  EXPECT_EQ(server_.Handshake(), Step::kFailed);
  EXPECT_THAT(server_.failure(), HasSubstr("speaks plain text"));
  EXPECT_EQ(server_.Handshake(), Step::kFailed);
}

TEST_F(TlsEngineTest, AnEndDuringTheHandshakeIsAFailure) {
  client_.Handshake();
  client_.ReceivedEnd();
  EXPECT_EQ(client_.Handshake(), Step::kFailed);
  EXPECT_THAT(client_.failure(), HasSubstr("ended the connection"));
}

TEST_F(TlsEngineTest, AServerRefusesAnotherRoleAndTheClientLearnsOfIt) {
  TlsEngine client(certificates_.Client(Role::kOperator).get(), Side::kClient);
  Step server_step = Step::kNeedsBytes;
  for (int i = 0; i < 3 && server_step != Step::kFailed; ++i) {
    client.Handshake();
    Carry(&client, &server_);
    server_step = server_.Handshake();
    Carry(&server_, &client);
  }
  ASSERT_EQ(server_step, Step::kFailed);
  EXPECT_THAT(server_.failure(), HasSubstr("has the role operator, but only worker"));
  ASSERT_TRUE(client.handshake_done());  // it ends before the server has judged
  Step end;
  ReadAll(&client, &end);
  EXPECT_EQ(end, Step::kFailed);
  EXPECT_THAT(client.failure(), HasSubstr("the peer refuses our certificate"));
}

TEST_F(TlsEngineTest, AClientRefusesTheServerOfAnotherJob) {
  const Certificates others("id-2");
  TlsEngine client(others.Client().get(), Side::kClient);
  client.Handshake();
  Carry(&client, &server_);
  server_.Handshake();
  Carry(&server_, &client);
  EXPECT_EQ(client.Handshake(), Step::kFailed);
  EXPECT_THAT(client.failure(), HasSubstr("signed by another authority"));
  Carry(&client, &server_);
  EXPECT_EQ(server_.Handshake(), Step::kFailed);
  EXPECT_THAT(server_.failure(), HasSubstr("does not know the authority"));
}

TEST_F(TlsEngineTest, AProtocolIsAgreedOn) {
  const auto context = certificates_.Server();
  SSL_CTX_set_alpn_select_cb(
      context.get(),
      [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in,
         unsigned bytes, void*) {
        *size = in[0];
        *out = in + 1;
        return bytes == 3 && std::memcmp(in, "\2h2", 3) == 0 ? SSL_TLSEXT_ERR_OK
                                                             : SSL_TLSEXT_ERR_ALERT_FATAL;
      },
      nullptr);
  TlsEngine client(certificates_.Client().get(), Side::kClient,
                   TlsEngine::Options{.protocol = "h2"});
  TlsEngine server(context.get(), Side::kServer);
  while (!server.handshake_done()) {
    client.Handshake();
    Carry(&client, &server);
    ASSERT_NE(server.Handshake(), Step::kFailed) << server.failure();
    Carry(&server, &client);
  }
}

}  // namespace
}  // namespace muster::net
