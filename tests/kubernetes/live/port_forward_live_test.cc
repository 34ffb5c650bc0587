#include "kubernetes/client/port_forward.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "kubernetes/client/tunnel.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using testing::kClusterPatience;
using testing::Kubectl;
using testing::PodRunning;

/// Sends `text` to a port of this machine, and reads until the other side ends.
std::string AskPort(uint16_t port, const std::string& text) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const timeval patience{.tv_sec = std::chrono::seconds(kClusterPatience).count()};
  EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  std::string answer;
  std::array<char, 65536> piece{};
  for (ssize_t got = 0; (got = ::read(fd, piece.data(), piece.size())) > 0;) {
    answer.append(piece.data(), static_cast<size_t>(got));
  }
  ::close(fd);
  return answer;
}

class PortForwardLiveTest : public testing::LiveTest {
 protected:
  /// A pod that answers on port 7171 of its loopback, as HTTP, with a file of `bytes` bytes.
  static nlohmann::json Answering(const std::string& name, const std::string& bytes) {
    return PodRunning(name, "mkdir /tmp/web; cd /tmp/web; head -c " + bytes +
                                " /dev/zero > file; exec python3 -m http.server -b 127.0.0.1 7171");
  }

  std::unique_ptr<Tunnel> Open(uint16_t port) {
    TunnelOptions options{
        .ns = ns_, .port = port, .find_pod = [this] { return absl::StatusOr<std::string>(pod_); }};
    return *Tunnel::Open(credentials_.get(), &clock_, std::move(options));
  }
  /// The file, asked for until the pod serves.
  std::string Fetch(const Tunnel& tunnel) {
    const TimePoint end = clock_.Now() + kClusterPatience;
    std::string answer;
    while (answer.empty() && clock_.Now() < end) {
      answer = AskPort(tunnel.port(), "GET /file HTTP/1.0\r\n\r\n");
    }
    return answer;
  }

  std::string pod_;
};

TEST_F(PortForwardLiveTest, ATunnelFollowsAJobToItsNextPod) {
  pod_ = "first";
  Create(Answering("first", "3000000"));
  WaitForPhase("first", "Running");
  const std::unique_ptr<Tunnel> tunnel = Open(7171);
  EXPECT_GT(Fetch(*tunnel).size(), 3'000'000u);
  Create(Answering("second", "10"));
  WaitForPhase("second", "Running");
  Kubectl("delete pod first --grace-period=0 --force -n " + ns_);
  pod_ = "second";
  const std::string answer = Fetch(*tunnel);
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_LT(answer.size(), 1000u);
}

TEST_F(PortForwardLiveTest, ALargeRequestArrivesWhole) {
  pod_ = "first";
  Create(Answering("first", "10"));
  WaitForPhase("first", "Running");
  const std::unique_ptr<Tunnel> tunnel = Open(7171);
  EXPECT_THAT(Fetch(*tunnel), HasSubstr("200 OK"));
  // The server waits for the end of the headers.
  const std::string header = "X-Large: " + std::string(60'000, 'x');
  EXPECT_THAT(AskPort(tunnel->port(), "GET /file HTTP/1.0\r\n" + header + "\r\n\r\n"),
              HasSubstr("200 OK"));
}

TEST_F(PortForwardLiveTest, APortAtWhichNothingListens) {
  pod_ = "quiet";
  Create(PodRunning("quiet", "exec sleep 1000"));
  WaitForPhase("quiet", "Running");
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const absl::Status status =
      ForwardPort(credentials_.get(), &clock_, {.ns = ns_, .pod = "quiet", .port = 7171},
                  OwnedFd(ends[1]), {}, {});
  EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("7171")));
  ::close(ends[0]);
}

TEST_F(PortForwardLiveTest, NoSuchPod) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const absl::Status status =
      ForwardPort(credentials_.get(), &clock_, {.ns = ns_, .pod = "absent", .port = 7171},
                  OwnedFd(ends[1]), {}, {});
  EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
  ::close(ends[0]);
}

}  // namespace
}  // namespace muster::kubernetes
