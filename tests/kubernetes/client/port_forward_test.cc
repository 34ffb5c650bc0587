#include "kubernetes/client/port_forward.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::_;
using testing::Answer;
using testing::FakeApiServer;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;

constexpr char kProtocol[] = "v4.channel.k8s.io";

std::string FrameOf(char channel, const std::string& bytes) {
  return std::string(1, channel) + bytes;
}

/// What a kubelet sends first.
void SendPorts(FakeWire& wire) {
  wire.SendMessage(FrameOf(0, std::string("\x01\x1c", 2)));
  wire.SendMessage(FrameOf(1, std::string("\x01\x1c", 2)));
}

/// The two ends of a connection; the forward takes `far`.
struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
    near = fds[0];
    far = fds[1];
  }
  ~SocketPair() { ::close(near); }
  int near = -1;
  int far = -1;
};

void Write(int fd, const std::string& text) {
  ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// Until the other side ends, or `bytes` have come.
std::string Read(int fd, size_t bytes) {
  std::string text;
  std::array<char, 65536> piece{};
  while (text.size() < bytes) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return text;
}

struct ForwardToFake {
  explicit ForwardToFake(FakeApiServer::Handler handler)
      : server(std::move(handler)), credentials(server.Access(), &clock) {}

  absl::Status Forward(int local, const std::string& pod = "ads-abc") {
    return ForwardPort(&credentials, &clock, {.ns = "team", .pod = pod, .port = 7171},
                       OwnedFd(local), {}, stop.get_token());
  }

  FakeApiServer server;
  SystemClock clock;
  CredentialSource credentials;
  std::stop_source stop;
};

TEST(ForwardPort, CarriesBytesBothWaysUntilThePodEnds) {
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    ASSERT_TRUE(wire.AcceptWebSocket(kProtocol));
    SendPorts(wire);
    const std::string got = wire.ReadMessage().value_or("nothing");
    EXPECT_EQ(got, FrameOf(0, "question"));
    wire.SendMessage(FrameOf(0, "answer"));
    wire.CloseWebSocket();
  });
  SocketPair pair;
  std::thread forward([&] { EXPECT_THAT(fake.Forward(pair.far), testing::IsOk()); });
  Write(pair.near, "question");
  EXPECT_EQ(Read(pair.near, 1000), "answer");
  forward.join();
  const FakeRequest seen = fake.server.requests().at(0);
  EXPECT_EQ(seen.method + " " + seen.target,
            "GET /api/v1/namespaces/team/pods/ads-abc/portforward?ports=7171");
  EXPECT_EQ(seen.authorization, "Bearer secret");
}

TEST(ForwardPort, ManyBytesInBothDirectionsAtOnce) {
  constexpr size_t kBytes = 3 << 20;
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    ASSERT_TRUE(wire.AcceptWebSocket(kProtocol));
    SendPorts(wire);
    size_t echoed = 0;
    while (echoed < kBytes) {
      const auto message = wire.ReadMessage();
      if (!message) return;
      echoed += message->size() - 1;
      wire.SendMessage(*message);
    }
    wire.CloseWebSocket();
  });
  SocketPair pair;
  std::string sent(kBytes, 'x');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
  std::thread forward([&] { EXPECT_THAT(fake.Forward(pair.far), testing::IsOk()); });
  std::thread writer([&] { Write(pair.near, sent); });
  const std::string got = Read(pair.near, kBytes);
  writer.join();
  forward.join();
  EXPECT_TRUE(got == sent);
}

TEST(ForwardPort, TheClientEnds) {
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    ASSERT_TRUE(wire.AcceptWebSocket(kProtocol));
    SendPorts(wire);
    EXPECT_EQ(wire.ReadMessage(), std::nullopt);
  });
  {
    SocketPair pair;
    ::shutdown(pair.near, SHUT_RDWR);
    EXPECT_THAT(fake.Forward(pair.far), testing::IsOk());
  }
}

TEST(ForwardPort, NothingListensAtThePort) {
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    ASSERT_TRUE(wire.AcceptWebSocket(kProtocol));
    SendPorts(wire);
    wire.SendMessage(FrameOf(1, "error forwarding port 7171: connection refused"));
    while (wire.ReadMessage()) {
    }
  });
  SocketPair pair;
  const absl::Status status = fake.Forward(pair.far);
  EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("7171: connection refused")));
  EXPECT_EQ(Read(pair.near, 1), "");
}

TEST(ForwardPort, TheServerRefuses) {
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    wire.Send(Answer(403, R"({"kind":"Status","status":"Failure","reason":"Forbidden","code":403,
        "message":"pods \"ads-abc\" is forbidden: User \"ann\" cannot create resource )"
                          R"(\"pods/portforward\" in API group \"\" in the namespace \"team\""})"));
  });
  SocketPair pair;
  const absl::Status status = fake.Forward(pair.far);
  EXPECT_EQ(KindOf(status), ApiErrorKind::kForbidden);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pods/portforward"));
  EXPECT_EQ(Read(pair.near, 1), "");
}

TEST(ForwardPort, TheServerIsKilled) {
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    ASSERT_TRUE(wire.AcceptWebSocket(kProtocol));
    SendPorts(wire);
    wire.ReadMessage();
    wire.Cut();
  });
  SocketPair pair;
  Write(pair.near, "x");
  EXPECT_THAT(fake.Forward(pair.far), testing::StatusIs(absl::StatusCode::kUnavailable, _));
}

TEST(ForwardPort, Stops) {
  ForwardToFake fake([](const FakeRequest&, FakeWire& wire) {
    ASSERT_TRUE(wire.AcceptWebSocket(kProtocol));
    SendPorts(wire);
    wire.SendMessage(FrameOf(0, "x"));
    while (wire.ReadMessage()) {
    }
  });
  SocketPair pair;
  std::thread forward([&] {
    EXPECT_THAT(fake.Forward(pair.far), testing::StatusIs(absl::StatusCode::kCancelled, _));
  });
  EXPECT_EQ(Read(pair.near, 1), "x");
  fake.stop.request_stop();
  forward.join();
  EXPECT_EQ(Read(pair.near, 1), "");
}

TEST(ForwardPort, NoNameReachesAnotherObject) {
  ForwardToFake fake([](const FakeRequest&, FakeWire&) {});
  SocketPair pair;
  EXPECT_THAT(fake.Forward(pair.far, "a/../b"),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_TRUE(fake.server.requests().empty());
}

}  // namespace
}  // namespace muster::kubernetes
