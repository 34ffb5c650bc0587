#include "http/http_client.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <filesystem>
#include <thread>

#include "base/address.h"
#include "base/file.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/gate.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::_;
using testing::Answer;
using testing::FakeApiServer;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

void SayOk(const FakeRequest&, FakeWire& wire) {
  wire.Send(Answer(200, "{}"));
}

/// A client, and what it needs to ask a server of a test.
class HttpClientTest : public ::testing::Test {
 protected:
  void Serve(FakeApiServer::Handler handler, bool wants_client_certificate = false) {
    server_ = std::make_unique<FakeApiServer>(std::move(handler), wants_client_certificate);
    address_ = JoinHostPort("127.0.0.1", server_->Access().port);
  }
  HttpRequest To(const std::string& path = "/") const {
    HttpRequest request{.url = "https://" + address_ + path, .peer = "the server"};
    request.tls.authority = server_->authority().certificate();
    request.times.whole = seconds(60);
    return request;
  }
  absl::StatusOr<HttpAnswer> Ask(const HttpRequest& request) { return client_.Do(request); }

  std::unique_ptr<FakeApiServer> server_;
  std::string address_;
  HttpClient client_{HttpProxies::kNone};
};

TEST_F(HttpClientTest, ManyRequestsOnOneConnection) {
  Serve([](const FakeRequest&, FakeWire& wire) {
    wire.Send(Answer(201, "{}", "Retry-After:  7 \r\n"));
  });
  for (int i = 0; i < 3; ++i) {
    HttpRequest request = To("/a/../b?c=%2F");
    request.method = "PATCH";
    request.headers = {"Content-Type: c/d", "Authorization: Bearer t"};
    request.body = "b";
    MUSTER_ASSERT_OK_AND_ASSIGN(const HttpAnswer answer, Ask(request));
    EXPECT_EQ(answer.status, 201);
    EXPECT_TRUE(answer.IsSuccess());
    EXPECT_EQ(answer.body, "{}");
    EXPECT_EQ(answer.Header("retry-after"), "7");
    EXPECT_EQ(answer.Header("etag"), "");
  }
  const FakeRequest last = server_->requests().back();
  EXPECT_EQ(last.method, "PATCH");
  EXPECT_EQ(last.target, "/a/../b?c=%2F");
  EXPECT_EQ(last.body, "b");
  EXPECT_EQ(last.content_type, "c/d");
  EXPECT_EQ(last.authorization, "Bearer t");
  EXPECT_EQ(last.connection, 1);
}

TEST_F(HttpClientTest, EveryMethodMayHaveABody) {
  Serve(SayOk);
  for (const char* method : {"GET", "DELETE", "POST"}) {
    for (const char* body : {"", "body"}) {
      HttpRequest request = To();
      request.method = method;
      request.body = body;
      ASSERT_THAT(Ask(request), IsOk());
      EXPECT_EQ(server_->requests().back().method, method);
      EXPECT_EQ(server_->requests().back().body, body);
    }
  }
}

TEST_F(HttpClientTest, ARedirectIsAnAnswer) {
  Serve([](const FakeRequest&, FakeWire& wire) {
    wire.Send(Answer(302, "elsewhere", "Location: /other\r\n"));
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(const HttpAnswer answer, Ask(To()));
  EXPECT_EQ(answer.status, 302);
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(HttpClientTest, SocketsAreClosedByExec) {
  Serve(SayOk);
  ASSERT_THAT(Ask(To()), IsOk());
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != server_->Access().port) continue;
    EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ++sockets;
  }
  EXPECT_EQ(sockets, 1);
}

TEST_F(HttpClientTest, AnotherAuthorityIsNotTrusted) {
  Serve(SayOk);
  HttpRequest request = To();
  request.tls.authority = testing::TestAuthority().certificate();
  EXPECT_THAT(Ask(request),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  request.tls.authority = "";  // what this machine trusts
  EXPECT_THAT(Ask(request),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  EXPECT_TRUE(server_->requests().empty());
  EXPECT_FALSE(MayHaveArrived(Ask(request).status()));
  const testing::TempDir folder;
  request.tls.authority_file = folder.File("ca.pem");
  ASSERT_THAT(WriteFileAtomically(folder.File("ca.pem"), server_->authority().certificate()),
              IsOk());
  EXPECT_THAT(Ask(request), IsOk());
}

TEST_F(HttpClientTest, TheServersNameMustMatch) {
  Serve(SayOk);
  HttpRequest request = To();
  request.connect_to = address_;
  request.url = "https://other.example.com/";
  EXPECT_THAT(Ask(request),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  request.url = "https://127.0.0.1/";
  EXPECT_THAT(Ask(request), IsOk());
}

TEST_F(HttpClientTest, ClientCertificates) {
  Serve(SayOk, /*wants_client_certificate=*/true);
  const testing::CertificateAndKey mine = server_->authority().Issue("scaler", "scaler");
  HttpRequest request = To();
  EXPECT_FALSE(Ask(request).ok());
  request.tls.client_certificate = mine.certificate;
  request.tls.client_key = "no";
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("key")));
  request.tls.client_key = mine.key;
  ASSERT_THAT(Ask(request), IsOk());
  EXPECT_EQ(server_->requests().back().client, "scaler");
  // A connection that showed another certificate is not used.
  const testing::CertificateAndKey other = server_->authority().Issue("other", "other");
  request.tls.client_certificate = other.certificate;
  request.tls.client_key = other.key;
  ASSERT_THAT(Ask(request), IsOk());
  EXPECT_EQ(server_->requests().back().client, "other");
  request.tls.client_certificate = "no";
  EXPECT_THAT(Ask(request),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("certificate")));
}

TEST_F(HttpClientTest, NobodyListens) {
  Serve(SayOk);
  HttpRequest request = To();
  server_.reset();
  const absl::Status status = Ask(request).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nothing answers at")));
  EXPECT_FALSE(MayHaveArrived(status));
  request.url = "https://muster-test.invalid/";
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("name")));
  request.url = "ftp://127.0.0.1/";
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kFailedPrecondition, _));
  request.url = "https://127.0.0.1:port/";
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kFailedPrecondition, _));
}

TEST_F(HttpClientTest, HalfAnAnswer) {
  const std::string kWhole = Answer(200, "{\"a\":1}");
  for (const std::string& half : {std::string(), kWhole.substr(0, 5), kWhole.substr(0, 40),
                                  kWhole.substr(0, kWhole.size() - 1)}) {
    Serve([&](const FakeRequest&, FakeWire& wire) {
      wire.Send(half);
      wire.Cut();
    });
    const absl::Status status = Ask(To()).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no whole answer")))
        << half;
    EXPECT_TRUE(MayHaveArrived(status));
  }
}

TEST_F(HttpClientTest, ALie) {
  for (const char* words : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 many OK\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}) {
    Serve([&](const FakeRequest&, FakeWire& wire) {
      wire.Send(words);
      wire.Cut();
    });
    EXPECT_THAT(Ask(To()), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no whole answer")))
        << words;
  }
}

TEST_F(HttpClientTest, Silence) {
  Serve([](const FakeRequest& request, FakeWire& wire) {
    if (request.target == "/head") wire.Send("HTTP/1.1 200 OK\r\n");
    if (request.target == "/body") wire.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx");
    wire.WaitForClose();
  });
  for (const char* path : {"/nothing", "/head", "/body"}) {
    HttpRequest request = To(path);
    request.times.whole = milliseconds(50);
    EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("in time")));
  }
  HttpRequest request = To("/body");
  request.times.stall = seconds(1);
  const absl::Status status = Ask(request).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("in time")));
  EXPECT_TRUE(MayHaveArrived(status));
}

TEST_F(HttpClientTest, TooLarge) {
  Serve([](const FakeRequest& request, FakeWire& wire) {
    if (request.target == "/chunks") {
      wire.Send(testing::ChunkedHead() + testing::Chunk(std::string(101, 'x')) +
                testing::kLastChunk);
    } else if (request.target == "/head") {
      std::string head = "HTTP/1.1 200 OK\r\n";
      for (int i = 0; i < 20; ++i) head += "Name: " + std::string(20'000, 'x') + "\r\n";
      wire.Send(head + "\r\n");
    } else {
      wire.Send(Answer(200, std::string(request.target == "/100" ? 100 : 101, 'x')));
    }
  });
  for (const auto& [path, words] :
       {std::pair("/101", "100 bytes"), {"/chunks", "100 bytes"}, {"/head", "the head of"}}) {
    HttpRequest request = To(path);
    request.body_bytes_max = 100;
    EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(words)));
  }
  HttpRequest request = To("/100");
  request.body_bytes_max = 100;
  EXPECT_THAT(Ask(request), IsOk());
}

TEST_F(HttpClientTest, AConnectionThatTheServerClosesJustThen) {
  // The server takes the second request of a connection, and dies.
  Serve([connection = 0](const FakeRequest& request, FakeWire& wire) mutable {
    if (request.connection == connection) return wire.Cut();
    connection = request.connection;
    wire.Send(Answer(200, "{}"));
  });
  ASSERT_THAT(Ask(To()), IsOk());
  EXPECT_THAT(Ask(To()), IsOk());
  EXPECT_EQ(server_->requests().size(), 3u);
  HttpRequest change = To();
  change.method = "POST";
  change.body = "{}";
  change.may_repeat = false;
  const absl::Status status = Ask(change).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no whole answer")));
  EXPECT_TRUE(MayHaveArrived(status));
  EXPECT_EQ(server_->requests().size(), 4u);
}

TEST_F(HttpClientTest, WhatTheServerClosedIsNotUsedAgain) {
  Serve([](const FakeRequest&, FakeWire& wire) {
    wire.Send(Answer(200, "{}", "Connection: close\r\n"));
  });
  HttpRequest change = To();
  change.may_repeat = false;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_THAT(Ask(change), IsOk());
    EXPECT_EQ(server_->requests().back().connection, i);
  }
}

TEST_F(HttpClientTest, AStreamComesInPieces) {
  testing::Gate headed;
  testing::Gate seen;
  Serve([&](const FakeRequest&, FakeWire& wire) {
    wire.Send(testing::ChunkedHead());
    headed.Wait();
    wire.Send(testing::Chunk("one"));
    seen.Wait();  // the rest comes only when the first piece has arrived
    wire.Send(testing::Chunk("two") + testing::kLastChunk);
  });
  std::string text;
  HttpRequest request = To();
  request.on_head = [&](const HttpAnswer& head) {
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.Header("Transfer-Encoding"), "chunked");
    headed.Open();
    return absl::OkStatus();
  };
  request.on_bytes = [&](std::string_view bytes) {
    text += bytes;
    if (text == "one") seen.Open();
    return absl::OkStatus();
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const HttpAnswer answer, Ask(request));
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(text, "onetwo");
}

TEST_F(HttpClientTest, AStreamEnds) {
  Serve([&](const FakeRequest& request, FakeWire& wire) {
    wire.Send(testing::ChunkedHead());
    if (request.target != "/head") wire.Send(testing::Chunk("one"));
    if (request.target == "/cut") return wire.Cut();
    wire.WaitForClose();
  });
  HttpRequest request = To();
  request.on_bytes = [](std::string_view) { return absl::OkStatus(); };
  for (const char* path : {"/one", "/head"}) {
    request.url = To(path).url;
    request.times.silence = milliseconds(50);
    EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kDeadlineExceeded, _));
    request.times.silence = HttpTimes::kNever;
    request.times.length = milliseconds(200);
    EXPECT_THAT(Ask(request), IsOk());
    request.times.length = HttpTimes::kNever;
  }
  request.url = To("/cut").url;
  EXPECT_THAT(Ask(request),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the stream broke")));
  request.on_bytes = [](std::string_view) { return absl::AbortedError("enough"); };
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kAborted, HasSubstr("enough")));
  request.on_head = [](const HttpAnswer&) { return absl::AbortedError("too much"); };
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kAborted, HasSubstr("too much")));
}

TEST_F(HttpClientTest, ACallIsStopped) {
  Serve([&](const FakeRequest&, FakeWire& wire) {
    wire.Send(testing::ChunkedHead() + testing::Chunk("one"));
    wire.WaitForClose();
  });
  std::stop_source source;
  std::jthread stopper;
  HttpRequest request = To();
  request.stop = source.get_token();
  request.on_bytes = [&](std::string_view) {
    stopper = std::jthread([&] { source.request_stop(); });
    return absl::OkStatus();
  };
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(Ask(request), StatusIs(absl::StatusCode::kCancelled, _));
}

TEST_F(HttpClientTest, AStreamThatIsRefusedIsReadWhole) {
  Serve([&](const FakeRequest&, FakeWire& wire) {
    wire.Send(Answer(429, "too many", "Retry-After: 7\r\n"));
  });
  HttpRequest request = To();
  request.on_bytes = [](std::string_view) { return absl::InternalError("not called"); };
  request.on_head = [](const HttpAnswer&) { return absl::InternalError("not called"); };
  MUSTER_ASSERT_OK_AND_ASSIGN(const HttpAnswer answer, Ask(request));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, "too many");
}

TEST_F(HttpClientTest, WhoeverIsSlowIsSaidToBeSlowOnce) {
  testing::Gate told;
  Serve([&](const FakeRequest&, FakeWire& wire) {
    told.Wait();
    wire.Send(Answer(200, "{}"));
  });
  int times = 0;
  HttpRequest request = To();
  request.slow_after = milliseconds(10);
  request.on_slow = [&] {
    ++times;
    told.Open();
  };
  EXPECT_THAT(Ask(request), IsOk());
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace muster
