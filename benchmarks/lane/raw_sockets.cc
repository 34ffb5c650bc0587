#include "benchmarks/lane/raw_sockets.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/clock.h"

namespace muster {
namespace {

void NoDelay(int fd) {
  const int on = 1;
  MUSTER_CHECK(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
}

/// Two connected sockets; closed with it.
class SocketPair {
 public:
  explicit SocketPair(SocketKind kind) {
    if (kind == SocketKind::kUnix) {
      MUSTER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds_.data()) == 0);
      return;
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof(at);
    MUSTER_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0);
    MUSTER_CHECK(::listen(listener, 1) == 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    fds_[0] = ConnectBench(fmt::format("127.0.0.1:{}", ntohs(at.sin_port)));
    fds_[1] = ::accept(listener, nullptr, nullptr);
    MUSTER_CHECK(fds_[1] >= 0);
    NoDelay(fds_[1]);
    ::close(listener);
  }
  ~SocketPair() {
    for (const int fd : fds_) ::close(fd);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  int a() const { return fds_[0]; }
  int b() const { return fds_[1]; }

 private:
  std::array<int, 2> fds_ = {-1, -1};
};

double Seconds(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

int ConnectBench(const std::string& address) {
  int fd = -1;
  if (address.starts_with("unix:")) {
    sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
    address.copy(to.sun_path, sizeof(to.sun_path) - 1, 5);
    fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    MUSTER_CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
  } else {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = ::socket(AF_INET, SOCK_STREAM, 0);
    MUSTER_CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
    NoDelay(fd);
  }
  return fd;
}

void ReadAll(int fd, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, at, bytes, 0);
    MUSTER_CHECK_MSG(got > 0, "the other side closed the connection");
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

void WriteAll(int fd, const void* from, size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    MUSTER_CHECK_MSG(sent > 0, "the other side closed the connection");
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
}

double SocketRate(SocketKind kind, size_t message_bytes, int messages) {
  const SocketPair pair(kind);
  std::thread sender([&] {
    const std::vector<char> block(message_bytes, 'x');
    for (int i = 0; i <= messages; ++i) WriteAll(pair.a(), block.data(), block.size());
  });
  std::vector<char> block(message_bytes);
  const SystemClock clock;
  ReadAll(pair.b(), block.data(), block.size());  // both threads run from here on
  const TimePoint begin = clock.Now();
  for (int i = 0; i < messages; ++i) ReadAll(pair.b(), block.data(), block.size());
  const double seconds = Seconds(begin, clock.Now());
  sender.join();
  return static_cast<double>(message_bytes) * messages / seconds;
}

std::vector<double> RoundTripSeconds(SocketKind kind, const RoundTrip& trip, int trips) {
  const SocketPair pair(kind);
  std::thread answerer([&] {
    std::vector<char> request(trip.request_bytes);
    const std::vector<char> reply(trip.reply_bytes, 'x');
    for (int i = 0; i < trips; ++i) {
      ReadAll(pair.a(), request.data(), request.size());
      WriteAll(pair.a(), reply.data(), reply.size());
    }
  });
  const std::vector<char> request(trip.request_bytes, 'x');
  std::vector<char> reply(trip.reply_bytes);
  const SystemClock clock;
  std::vector<double> seconds;
  for (int i = 0; i < trips; ++i) {
    const TimePoint begin = clock.Now();
    WriteAll(pair.b(), request.data(), request.size());
    ReadAll(pair.b(), reply.data(), reply.size());
    seconds.push_back(Seconds(begin, clock.Now()));
  }
  answerer.join();
  return seconds;
}

}  // namespace muster
