#include "scaler/rest/server/http_server.h"

#include <chrono>
#include <future>
#include <vector>

#include "tests/scaler/rest/server/rest_fixture.h"

namespace muster::scaler::rest {
namespace {

using ::testing::HasSubstr;
using testing::HttpClient;
using ::testing::IsEmpty;
using ::testing::Not;

class HttpServerTest : public testing::RestFixture {
 protected:
  std::unique_ptr<HttpClient> OpenStream(const std::string& query, const std::string& headers = "",
                                         int receive_buffer = 0) {
    auto client = Connect(receive_buffer);
    client->Send(client->Head("GET", "/api/v1/stream" + query) + headers + "\r\n");
    return client;
  }
};

TEST_F(HttpServerTest, ThePageNeedsNoTokenEverythingElseDoes) {
  StartServer();
  const auto client = Connect();
  const auto ask = [&](const std::string& method, const std::string& target,
                       const std::string& headers) {
    return client
        ->Ask(fmt::format("{} {} HTTP/1.1\r\nHost: localhost:{}\r\n{}\r\n", method, target, port_,
                          headers))
        .status;
  };
  EXPECT_EQ(ask("GET", "/", ""), 200);
  EXPECT_EQ(ask("GET", "/healthz", ""), 200);
  EXPECT_EQ(ask("GET", "/api/v1/job", ""), 401);
  EXPECT_EQ(ask("GET", "/metrics", "Authorization: Bearer wrong\r\n"), 401);
  EXPECT_EQ(ask("GET", "/api/v1/stream", ""), 401);
  EXPECT_EQ(ask("POST", "/api/v1/job/cancel", "Content-Length: 0\r\n"), 401);
  EXPECT_EQ(ask("GET", "/api/v1/job", "Authorization: Bearer c0ffee\r\n"), 200);
  EXPECT_EQ(job_.GetJob()->state, JobState::kRunning);
}

TEST_F(HttpServerTest, BrowsersThatAreMadeToAskAreRefused) {
  StartServer();
  const auto client = Connect();
  const std::string rebound = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
  EXPECT_EQ(client->Ask(rebound).status, 421);
  const std::string body = "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
  const auto cancel = [&](const std::string& headers) {
    return client->Ask(client->Head("POST", "/api/v1/job/cancel") + headers + body).status;
  };
  EXPECT_EQ(cancel("Sec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(cancel("Origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(client
                ->Ask(client->Head("POST", "/api/v1/job/cancel") +
                      "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}")
                .status,
            415);
  EXPECT_EQ(job_.GetJob()->state, JobState::kRunning);
  EXPECT_EQ(
      cancel(fmt::format("Origin: http://127.0.0.1:{}\r\nSec-Fetch-Site: same-origin\r\n", port_)),
      202);
  EXPECT_EQ(job_.GetJob()->state, JobState::kCancelled);
}

TEST_F(HttpServerTest, ANewConnectionTakesTheLongestIdleOnesPlace) {
  HttpServerOptions options = Options();
  options.http.connections_max = 2;
  StartServer(std::move(options));
  const auto first = Connect();
  EXPECT_EQ(first->Ask(first->Get("/healthz")).status, 200);
  const auto second = Connect();
  EXPECT_EQ(second->Ask(second->Get("/healthz")).status, 200);
  const auto third = Connect();
  EXPECT_EQ(third->Ask(third->Get("/healthz")).status, 200);
  EXPECT_THAT(first->ReceiveAll(), IsEmpty());
  EXPECT_EQ(second->Ask(second->Get("/healthz")).status, 200);
}

TEST_F(HttpServerTest, SlowPeersKeepNobodyOut) {
  HttpServerOptions options = Options();
  options.http.connections_max = 2;
  StartServer(std::move(options));
  const auto first = Connect();
  first->Send("GET /healthz HTTP/1.1\r\n");
  const auto second = Connect();
  second->Send(second->Head("GET", "/healthz"));
  const auto third = Connect();
  EXPECT_EQ(third->Ask(third->Get("/healthz")).status, 200);
  EXPECT_THAT(first->ReceiveAll(), IsEmpty());
  EXPECT_EQ(second->Ask("\r\n").status, 200);
}

TEST_F(HttpServerTest, WhereAllAreBusyANewConnectionIsRefused) {
  HttpServerOptions options = Options();
  options.http.connections_max = 2;
  StartServer(std::move(options));
  job_.Hold();
  const auto first = Connect();
  first->Send(first->Get("/api/v1/job"));
  const auto second = Connect();
  second->Send(second->Get("/api/v1/job"));
  job_.AwaitJobCalls(2);
  const auto third = Connect();
  const testing::Answer refused = third->Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("connection"), "close");
  job_.Release();
  EXPECT_EQ(first->Receive().status, 200);
  EXPECT_EQ(second->Receive().status, 200);
}

TEST_F(HttpServerTest, ManyConnectionsAreServed) {
  StartServer();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(Connect());
  for (const auto& client : clients) client->Send(client->Get("/api/v1/nodes"));
  for (const auto& client : clients) EXPECT_EQ(client->Receive().status, 200);
}

TEST_F(HttpServerTest, AJobThatDoesNotAnswerHoldsUpNobodyElse) {
  HttpServerOptions options = Options();
  options.http.calls_max = 3;
  StartServer(std::move(options));
  job_.Hold();
  std::vector<std::unique_ptr<HttpClient>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(Connect());
    waiting.back()->Send(waiting.back()->Get("/api/v1/job"));
  }
  job_.AwaitJobCalls(3);
  const auto client = Connect();
  EXPECT_EQ(client->Ask(client->Get("/")).status, 200);
  EXPECT_EQ(client->Ask(client->Get("/nothing")).status, 404);
  const testing::Answer busy = client->Ask(client->Get("/api/v1/nodes"));
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.headers.at("retry-after"), "1");
  job_.Release();
  for (const auto& one : waiting) EXPECT_EQ(one->Receive().status, 200);
  EXPECT_EQ(client->Ask(client->Get("/api/v1/nodes")).status, 200);
}

TEST_F(HttpServerTest, RatesAreLimited) {
  HttpServerOptions options = Options();
  options.rest.per_connection = {.per_second = 1, .burst = 2};
  StartServer(std::move(options));
  const auto client = Connect();
  EXPECT_EQ(client->Ask(client->Get("/api/v1/job")).status, 200);
  EXPECT_EQ(client->Ask(client->Get("/api/v1/job")).status, 200);
  const testing::Answer refused = client->Ask(client->Get("/api/v1/job"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(client->Ask(client->Get("/api/v1/job")).status, 200);
}

TEST_F(HttpServerTest, AStreamHasEventsAndStatuses) {
  StartServer();
  job_.AddEvent();
  const auto stream = OpenStream("?after=0");
  const testing::Answer head = stream->ReceiveHead();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
  EXPECT_THAT(stream->ReceiveUntil("\"wall_us\""), HasSubstr("id: 1\nevent: event\ndata: {"));
  EXPECT_THAT(stream->ReceiveUntil("\"nodes\":["), HasSubstr("event: status\ndata: {\"job\""));
  job_.AddEvent();
  server_->NotifyEvents();
  EXPECT_THAT(stream->ReceiveUntil("id: 2\n"), Not(HasSubstr("id: 1\n")));
}

TEST_F(HttpServerTest, AStreamGoesOnWhereItWas) {
  StartServer();
  for (int i = 0; i < 200; ++i) job_.AddEvent();
  const auto stream = OpenStream("?topics=events", "Last-Event-ID: 100\r\n");
  const std::string text = stream->ReceiveUntil("id: 200\n");
  for (int id = 101; id <= 200; ++id) EXPECT_THAT(text, HasSubstr(fmt::format("id: {}\n", id)));
  EXPECT_THAT(text, Not(HasSubstr("id: 100\n")));
  // Without a position: new events only.
  const auto fresh = OpenStream("?topics=events");
  fresh->ReceiveUntil("retry: ");
  job_.AddEvent();
  EXPECT_THAT(fresh->ReceiveUntil("id: 201\n"), Not(HasSubstr("id: 200\n")));
}

TEST_F(HttpServerTest, ASilentStreamHasAHeartbeat) {
  StartServer();
  const auto stream = OpenStream("?topics=events");
  stream->ReceiveUntil("retry: 1000\n\n");
  for (int i = 0; i < 50; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    job_.AwaitAnotherEventCall();
  }
  EXPECT_THAT(stream->ReceiveUntil(": heartbeat\n\n"), HasSubstr(": heartbeat"));
}

TEST_F(HttpServerTest, WhoDoesNotReadItsStreamIsDropped) {
  HttpServerOptions options = Options();
  options.http.send_buffer_bytes = 4096;
  StartServer(std::move(options));
  for (int i = 0; i < 200; ++i) job_.AddEvent(16000);
  const auto reads = OpenStream("?topics=events");
  reads->ReceiveUntil("retry: ");
  const auto stuck = OpenStream("?topics=events&after=0", "", /*receive_buffer=*/4096);
  const auto dropped = [&] {
    const std::string name = "\nmuster_rest_streams_dropped_total ";
    const auto client = Connect();
    const std::string metrics = client->Ask(client->Get("/metrics")).body;
    const size_t at = metrics.find(name);
    return at == metrics.npos ? "" : metrics.substr(at + name.size(), 2);
  };
  while (dropped() == "0\n") {
    clock_.Advance(std::chrono::seconds(1));
    job_.AwaitAnotherEventCall();  // which the reading stream causes, when it has taken all
  }
  EXPECT_EQ(dropped(), "1\n");
  job_.AddEvent();
  EXPECT_THAT(reads->ReceiveUntil("id: 201\n"), HasSubstr("id: 201"));
}

TEST_F(HttpServerTest, StreamsAreLimited) {
  HttpServerOptions options = Options();
  options.streams.streams_max = 1;
  StartServer(std::move(options));
  {
    const auto first = OpenStream("");
    first->ReceiveUntil("retry: ");
    EXPECT_EQ(OpenStream("")->Receive().status, 503);
  }
  // Its client is gone: there is room again.
  int status = 503;
  while (status == 503) status = OpenStream("")->ReceiveHead().status;
  EXPECT_EQ(status, 200);
}

TEST_F(HttpServerTest, StopEndsOpenStreamsHeldCallsAndIdleConnections) {
  StartServer();
  const auto stream = OpenStream("");
  stream->ReceiveUntil("retry: ");
  const auto idle = Connect();
  EXPECT_EQ(idle->Ask(idle->Get("/healthz")).status, 200);
  const auto slow = Connect();
  slow->Send("GET /");
  server_->Stop();
  stream->ReceiveAll();
  EXPECT_FALSE(stream->timed_out());
  EXPECT_THAT(idle->ReceiveAll(), IsEmpty());
  EXPECT_THAT(slow->ReceiveAll(), IsEmpty());
  server_->Stop();
  server_->NotifyEvents();
}

TEST_F(HttpServerTest, FinishTellsStreamsHowItEnded) {
  HttpServerOptions options = Options();
  options.tick = std::chrono::hours(1);
  StartServer(options);
  const auto stream = OpenStream("");
  stream->ReceiveUntil("retry: ");
  ASSERT_TRUE(job_.Give({CancelJob{}, "enough"}).ok());
  server_->Finish(std::chrono::hours(1));
  const std::string text = stream->ReceiveAll();
  EXPECT_THAT(text, HasSubstr("event: event"));
  EXPECT_THAT(text, HasSubstr("event: status"));
  EXPECT_THAT(text, HasSubstr("\"state\":\"cancelled\""));
}

TEST_F(HttpServerTest, StopWaitsForACallThatTheJobIsAnswering) {
  StartServer();
  job_.Hold();
  const auto client = Connect();
  client->Send(client->Get("/api/v1/job"));
  job_.AwaitJobCalls(1);
  const std::future<void> stopped = std::async(std::launch::async, [this] { server_->Stop(); });
  EXPECT_THAT(client->ReceiveAll(), IsEmpty()) << "Stop() has begun: connections are closed";
  // However slow the machine is, it has not come back; one that does not wait has.
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  job_.Release();
  stopped.wait();
  server_.reset();
}

TEST_F(HttpServerTest, APortThatIsTakenIsNamedAndOneThatWasLeftIsFree) {
  StartServer();
  HttpServerOptions options = Options();
  options.port = port_;
  {
    HttpServer other(options, &job_, &clock_);
    EXPECT_THAT(other.Listen(),
                muster::testing::StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr(fmt::format("127.0.0.1:{}", port_))));
  }
  const auto client = Connect();
  EXPECT_EQ(client->Ask(client->Get("/healthz")).status, 200);
  const uint16_t port = port_;
  server_->Stop();
  StartServer(options);
  EXPECT_EQ(port_, port);
}

TEST_F(HttpServerTest, MetricsCountTheInterfaceItself) {
  StartServer();
  const auto client = Connect();
  client->Ask(client->Get("/nothing"));
  const testing::Answer answer = client->Ask(client->Get("/metrics"));
  EXPECT_EQ(answer.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer.body, HasSubstr("muster_rest_answers_total{status=\"4xx\"} 1\n"));
  EXPECT_THAT(answer.body, HasSubstr("muster_rest_connections 1\n"));
}

}  // namespace
}  // namespace muster::scaler::rest
