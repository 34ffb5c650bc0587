// One peer and its ways to misbehave: slow, oversized, malformed, gone.
#include "scaler/rest/server/internal/http_connection.h"
#include "tests/scaler/rest/server/rest_fixture.h"

namespace muster::scaler::rest {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class HttpConnectionTest : public testing::RestFixture {};

TEST_F(HttpConnectionTest, AnswersAreProtectedAndConnectionsAreKept) {
  StartServer();
  const auto client = Connect();
  for (int i = 0; i < 3; ++i) {
    const testing::Answer answer = client->Ask(client->Get("/api/v1/job"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, HasSubstr("\"name\":\"flights\""));
    EXPECT_EQ(answer.headers.at("content-type"), "application/json");
    EXPECT_EQ(answer.headers.at("cache-control"), "no-store");
    EXPECT_EQ(answer.headers.at("x-content-type-options"), "nosniff");
    EXPECT_THAT(answer.headers.at("content-security-policy"), HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(answer.headers.at("date"), HasSubstr(" GMT"));
    EXPECT_FALSE(answer.headers.contains("access-control-allow-origin"));
  }
}

TEST_F(HttpConnectionTest, HeadHasTheHeadersAlone) {
  StartServer();
  const auto client = Connect();
  const testing::Answer head =
      client->Ask(client->Head("HEAD", "/api/v1/nodes") + "\r\n", /*head_only=*/true);
  const testing::Answer whole = client->Ask(client->Get("/api/v1/nodes"));
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), whole.headers.at("content-length"));
  const testing::Answer stream =
      client->Ask(client->Head("HEAD", "/api/v1/stream") + "\r\n", /*head_only=*/true);
  EXPECT_EQ(stream.headers.at("content-type"), "text/event-stream");
  EXPECT_THAT(client->ReceiveAll(), IsEmpty());
}

TEST_F(HttpConnectionTest, PipelinedRequestsAreAnsweredInTheirOrder) {
  StartServer();
  const auto client = Connect();
  client->Send(client->Get("/api/v1/job") + client->Post("/api/v1/job/drain", "{}") +
               client->Get("/nothing") + client->Get("/healthz"));
  EXPECT_EQ(client->Receive().status, 200);
  EXPECT_EQ(client->Receive().status, 202);
  EXPECT_EQ(client->Receive().status, 404);
  EXPECT_THAT(client->Receive().body, HasSubstr("ok"));
}

TEST_F(HttpConnectionTest, WhoHasSaidEverythingIsStillAnswered) {
  StartServer();
  const auto client = Connect();
  client->Send(client->Get("/api/v1/job"));
  client->HalfClose();
  EXPECT_EQ(client->Receive().status, 200);
  EXPECT_THAT(client->ReceiveAll(), IsEmpty());
  EXPECT_FALSE(client->timed_out());
}

TEST_F(HttpConnectionTest, ASlowHeadIsGivenUp) {
  HttpServerOptions options = Options();
  options.http.header_time_max = std::chrono::milliseconds(50);
  StartServer(std::move(options));
  const auto client = Connect();
  client->Send("GET / HTTP/1.1\r\nHo");  // and nothing more
  const testing::Answer answer = client->Receive();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.headers.at("content-type"), "application/problem+json");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_THAT(client->ReceiveAll(), IsEmpty());
}

TEST_F(HttpConnectionTest, ASlowBodyIsGivenUp) {
  HttpServerOptions options = Options();
  options.http.body_time_max = std::chrono::milliseconds(50);
  StartServer(std::move(options));
  const auto client = Connect();
  client->Send(client->Head("POST", "/api/v1/job/drain") +
               "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_EQ(client->Receive().status, 408);
  EXPECT_THAT(client->ReceiveAll(), IsEmpty());
}

TEST_F(HttpConnectionTest, AnIdleConnectionIsClosedWithoutAWord) {
  HttpServerOptions options = Options();
  options.http.idle_time_max = std::chrono::milliseconds(50);
  StartServer(std::move(options));
  const auto client = Connect();
  EXPECT_THAT(client->ReceiveAll(), IsEmpty());
  EXPECT_FALSE(client->timed_out());
}

TEST_F(HttpConnectionTest, AHeadBeyondTheLimitIsRefused) {
  StartServer();
  const uint32_t limit = HttpLimits().header_bytes_max;
  const auto fits = Connect();
  const std::string head = fits->Head("GET", "/api/v1/job");
  const auto padded = [&head](size_t bytes) {
    const std::string begin = head + "X-Padding: ";
    return begin + std::string(bytes - begin.size() - 4, 'a') + "\r\n\r\n";
  };
  EXPECT_EQ(fits->Ask(padded(limit)).status, 200);
  const auto over = Connect();
  EXPECT_EQ(over->Ask(padded(limit + 100)).status, 431);
  EXPECT_THAT(over->ReceiveAll(), IsEmpty());
}

TEST_F(HttpConnectionTest, ABodyBeyondTheLimitIsRefusedBeforeItIsSent) {
  StartServer();
  const uint64_t limit = HttpLimits().body_bytes_max;
  const auto client = Connect();
  // As large as may be: read, and then wrong for another reason.
  const std::string large = "{" + std::string(limit - 2, ' ') + "}";
  EXPECT_EQ(client->Ask(client->Post("/api/v1/job/drain", large)).status, 202);
  client->Send(
      client->Head("POST", "/api/v1/job/drain") +
      fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", limit + 1));
  EXPECT_EQ(client->Receive().status, 413);

  const auto chunked = Connect();
  chunked->Send(chunked->Head("POST", "/api/v1/job/drain") +
                "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
                fmt::format("{:x}\r\n", limit + 1) + std::string(limit + 1, ' '));
  EXPECT_EQ(chunked->Receive().status, 413);
}

TEST_F(HttpConnectionTest, ChunkedBodiesAndExpectationsWork) {
  StartServer();
  const auto client = Connect();
  EXPECT_EQ(client
                ->Ask(client->Head("POST", "/api/v1/job/drain") +
                      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
                .status,
            202);
  client->Send(client->Head("POST", "/api/v1/job/drain") +
               "Content-Type: application/json\r\nExpect: 100-continue\r\n"
               "Content-Length: 2\r\n\r\n");
  EXPECT_EQ(client->ReceiveHead().status, 100);
  client->Send("{}");
  EXPECT_EQ(client->Receive().status, 202);
}

TEST_F(HttpConnectionTest, WhatIsNoRequestIsRefused) {
  StartServer();
  for (const std::string bytes :
       {"hello\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\r\n a\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "\x16\x03\x01 as TLS begins\r\n\r\n"}) {
    const auto client = Connect();
    testing::Answer answer = client->Ask(bytes);
    EXPECT_EQ(answer.status, 400) << bytes;
    EXPECT_EQ(answer.headers["content-type"], "application/problem+json");
    EXPECT_THAT(client->ReceiveAll(), IsEmpty());
  }
  // Everybody else goes on.
  const auto client = Connect();
  EXPECT_EQ(client->Ask(client->Get("/healthz")).status, 200);
}

TEST_F(HttpConnectionTest, WhoAsksForOneAnswerIsSentAway) {
  StartServer();
  const auto client = Connect();
  const testing::Answer answer =
      client->Ask(client->Head("GET", "/healthz") + "Connection: close\r\n\r\n");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_THAT(client->ReceiveAll(), IsEmpty());
  const auto old = Connect();
  old->Send(fmt::format("GET /healthz HTTP/1.0\r\nHost: localhost:{}\r\n\r\n", port_));
  EXPECT_EQ(old->Receive().status, 200);
  EXPECT_THAT(old->ReceiveAll(), IsEmpty());
}

}  // namespace
}  // namespace muster::scaler::rest
