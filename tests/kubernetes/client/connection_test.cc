#include "kubernetes/client/connection.h"

#include <gtest/gtest.h>

#include <thread>

#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/gate.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::_;
using testing::Answer;
using ::testing::AnyOf;
using testing::FakeApiServer;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;

TimePoint Soon() {
  return SystemClock().Now() + seconds(60);
}

void SayOk(const FakeRequest&, FakeWire& wire) {
  wire.Send(Answer(200, "{}"));
}

TEST(Connection, ManyRequestsOnOneConnection) {
  FakeApiServer server(SayOk);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto connection, Connection::Open(server.Access(), {}, Soon()));
  for (int i = 0; i < 3; ++i) {
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const HttpAnswer answer,
        connection->Exchange(
            {.method = "PATCH", .target = "/a", .body = "b", .content_type = "c/d", .token = "t"},
            Soon(), 100));
    EXPECT_EQ(answer.code, 200);
    EXPECT_EQ(answer.body, "{}");
    EXPECT_TRUE(connection->IsReusable());
  }
  const FakeRequest last = server.requests().back();
  EXPECT_EQ(last.method, "PATCH");
  EXPECT_EQ(last.body, "b");
  EXPECT_EQ(last.content_type, "c/d");
  EXPECT_EQ(last.authorization, "Bearer t");
  EXPECT_EQ(last.connection, 1);
}

TEST(Connection, APrefixComesBeforeEveryPath) {
  FakeApiServer server(SayOk);
  ClusterAccess access = server.Access();
  access.path_prefix = "/k8s/c1";
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto connection, Connection::Open(access, {}, Soon()));
  ASSERT_THAT(connection->Exchange({.target = "/api"}, Soon(), 100), testing::IsOk());
  EXPECT_EQ(server.requests().back().target, "/k8s/c1/api");
}

TEST(Connection, AnotherClustersCertificateIsNotTrusted) {
  FakeApiServer server(SayOk);
  ClusterAccess access = server.Access();
  access.authority.text = testing::TestAuthority().certificate();
  EXPECT_THAT(Connection::Open(access, {}, Soon()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  access.authority = {};  // what this machine trusts
  EXPECT_THAT(Connection::Open(access, {}, Soon()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  EXPECT_TRUE(server.requests().empty());
}

TEST(Connection, TheServersNameMustMatch) {
  FakeApiServer server(SayOk);
  ClusterAccess access = server.Access();
  access.tls_server_name = "other.example.com";
  EXPECT_THAT(Connection::Open(access, {}, Soon()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  access.tls_server_name = "127.0.0.1";
  EXPECT_THAT(Connection::Open(access, {}, Soon()), testing::IsOk());
}

TEST(Connection, ClientCertificates) {
  FakeApiServer server(SayOk, /*wants_client_certificate=*/true);
  const testing::CertificateAndKey mine = server.authority().Issue("scaler", "scaler");
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const auto connection,
      Connection::Open(server.Access(),
                       {.client_certificate = mine.certificate, .client_key = mine.key}, Soon()));
  ASSERT_THAT(connection->Exchange({.target = "/"}, Soon(), 100), testing::IsOk());
  EXPECT_EQ(server.requests().back().client, "scaler");
  // With TLS 1.3 the server's refusal arrives after the handshake.
  auto without = Connection::Open(server.Access(), {}, Soon());
  if (without.ok()) {
    EXPECT_FALSE((*without)->Exchange({.target = "/"}, Soon(), 100).ok());
  }
  EXPECT_THAT(Connection::Open(server.Access(),
                               {.client_certificate = "no", .client_key = mine.key}, Soon()),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("certificate")));
  EXPECT_THAT(
      Connection::Open(server.Access(),
                       {.client_certificate = mine.certificate, .client_key = "no"}, Soon()),
      testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("key")));
}

TEST(Connection, NobodyListens) {
  ClusterAccess access;
  {
    FakeApiServer server(SayOk);
    access = server.Access();
  }
  const auto connection = Connection::Open(access, {}, Soon());
  EXPECT_THAT(connection,
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nothing answers")));
  EXPECT_EQ(KindOf(connection.status()), ApiErrorKind::kUnavailable);
  access.host = "muster-test.invalid";
  EXPECT_THAT(Connection::Open(access, {}, Soon()),
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("name")));
}

TEST(Connection, AnswersThatAreCutOff) {
  const std::string kWhole = Answer(200, "{\"a\":1}");
  for (const size_t bytes : {size_t{0}, size_t{5}, size_t{40}, kWhole.size() - 1}) {
    FakeApiServer server([&](const FakeRequest&, FakeWire& wire) {
      wire.Send(kWhole.substr(0, bytes));
      wire.Cut();
    });
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto connection,
                                Connection::Open(server.Access(), {}, Soon()));
    EXPECT_THAT(connection->Exchange({.target = "/"}, Soon(), 100),
                testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no whole answer")))
        << bytes;
    EXPECT_FALSE(connection->IsReusable());
  }
}

TEST(Connection, AServerThatSaysNothing) {
  FakeApiServer server([](const FakeRequest&, FakeWire& wire) {
    wire.Send("HTTP/1.1 200 OK\r\n");
    wire.WaitForClose();
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(auto connection, Connection::Open(server.Access(), {}, Soon()));
  EXPECT_THAT(connection->Exchange({.target = "/"}, SystemClock().Now() + milliseconds(50), 100),
              testing::StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("in time")));
  EXPECT_FALSE(connection->IsReusable());
}

TEST(Connection, AnswersAreBounded) {
  FakeApiServer server([](const FakeRequest& request, FakeWire& wire) {
    if (request.target == "/chunks") {
      wire.Send(testing::ChunkedHead() + testing::Chunk(std::string(101, 'x')) +
                testing::kLastChunk);
    } else {
      wire.Send(Answer(200, std::string(request.target == "/100" ? 100 : 101, 'x')));
    }
  });
  for (const char* target : {"/101", "/chunks"}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(auto connection, Connection::Open(server.Access(), {}, Soon()));
    EXPECT_THAT(connection->Exchange({.target = target}, Soon(), 100),
                testing::StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("100 bytes")));
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(auto connection, Connection::Open(server.Access(), {}, Soon()));
  EXPECT_THAT(connection->Exchange({.target = "/100"}, Soon(), 100), testing::IsOk());
}

TEST(Connection, WhatTheServerClosedIsNotReusable) {
  FakeApiServer server([](const FakeRequest& request, FakeWire& wire) {
    wire.Send(Answer(200, "{}", request.target == "/close" ? "Connection: close\r\n" : ""));
    if (request.target == "/cut") wire.Cut();
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(auto one, Connection::Open(server.Access(), {}, Soon()));
  ASSERT_THAT(one->Exchange({.target = "/close"}, Soon(), 100), testing::IsOk());
  EXPECT_FALSE(one->IsReusable());
  MUSTER_ASSERT_OK_AND_ASSIGN(auto two, Connection::Open(server.Access(), {}, Soon()));
  ASSERT_THAT(two->Exchange({.target = "/cut"}, Soon(), 100), testing::IsOk());
  while (two->IsReusable()) std::this_thread::yield();
}

TEST(Connection, AStreamComesInPieces) {
  testing::Gate seen;
  FakeApiServer server([&](const FakeRequest&, FakeWire& wire) {
    wire.Send(testing::ChunkedHead() + testing::Chunk("one"));
    seen.Wait();  // the rest comes only when the first piece has arrived
    wire.Send(testing::Chunk("two") + testing::kLastChunk);
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(auto connection, Connection::Open(server.Access(), {}, Soon()));
  std::string text;
  const auto answer = connection->Stream({.target = "/"}, Soon(), {.silence = seconds(60)},
                                         [&](std::string_view bytes) {
                                           text += bytes;
                                           if (text == "one") seen.Open();
                                           return absl::OkStatus();
                                         });
  EXPECT_THAT(answer, testing::IsOk());
  EXPECT_EQ(text, "onetwo");
}

TEST(Connection, AStreamEnds) {
  FakeApiServer server([&](const FakeRequest& request, FakeWire& wire) {
    wire.Send(testing::ChunkedHead() + testing::Chunk("one"));
    if (request.target == "/cut") return wire.Cut();
    wire.WaitForClose();
  });
  const auto take = [](std::string_view) { return absl::OkStatus(); };
  const auto stream = [&](const std::string& target, const StreamLimits& limits, const auto& on) {
    auto connection = Connection::Open(server.Access(), {}, Soon());
    return (*connection)->Stream({.target = target}, Soon(), limits, on).status();
  };
  EXPECT_THAT(stream("/cut", {.silence = seconds(60)}, take),
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the stream broke")));
  EXPECT_THAT(stream("/", {.silence = milliseconds(50)}, take),
              testing::StatusIs(absl::StatusCode::kDeadlineExceeded, _));
  EXPECT_THAT(
      stream("/", {.silence = seconds(60), .end = SystemClock().Now() + milliseconds(200)}, take),
      testing::IsOk());
  EXPECT_THAT(stream("/", {.silence = seconds(60)},
                     [](std::string_view) { return absl::AbortedError("enough"); }),
              testing::StatusIs(absl::StatusCode::kAborted, HasSubstr("enough")));
}

TEST(Connection, AStreamIsStopped) {
  FakeApiServer server([&](const FakeRequest&, FakeWire& wire) {
    wire.Send(testing::ChunkedHead() + testing::Chunk("one"));
    wire.WaitForClose();
  });
  std::stop_source source;
  MUSTER_ASSERT_OK_AND_ASSIGN(auto connection,
                              Connection::Open(server.Access(), {}, Soon(), source.get_token()));
  std::jthread stopper;
  EXPECT_THAT(connection->Stream({.target = "/"}, Soon(), {.silence = seconds(600)},
                                 [&](std::string_view) {
                                   stopper = std::jthread([&] { source.request_stop(); });
                                   return absl::OkStatus();
                                 }),
              testing::StatusIs(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(Connection::Open(server.Access(), {}, Soon(), source.get_token()),
              testing::StatusIs(absl::StatusCode::kCancelled, _));
}

TEST(Connection, AStreamThatIsRefusedIsReadWhole) {
  FakeApiServer server([&](const FakeRequest&, FakeWire& wire) {
    wire.Send(Answer(429, "too many", "Retry-After: 7\r\n"));
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(auto connection, Connection::Open(server.Access(), {}, Soon()));
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const HttpAnswer answer,
      connection->Stream({.target = "/"}, Soon(), {.silence = seconds(60)},
                         [](std::string_view) { return absl::InternalError("not called"); }));
  EXPECT_EQ(answer.code, 429);
  EXPECT_EQ(answer.body, "too many");
  EXPECT_EQ(answer.retry_after, "7");
}

}  // namespace
}  // namespace muster::kubernetes
