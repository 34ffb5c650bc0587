#include "kubernetes/client/tunnel.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace muster::kubernetes {
namespace {

constexpr int kBacklog = 64;

struct Listener {
  int fd = -1;
  uint16_t port = 0;
};

absl::StatusOr<Listener> Listen() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (fd >= 0 && ::bind(fd, any, size) == 0 && ::listen(fd, kBacklog) == 0 &&
      ::getsockname(fd, any, &size) == 0) {
    return Listener{.fd = fd, .port = ntohs(address.sin_port)};
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return ErrnoStatus(error, "no port on 127.0.0.1 for a tunnel");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tunnel>> Tunnel::Open(CredentialSource* credentials,
                                                     const Clock* clock, TunnelOptions options) {
  MUSTER_ASSIGN_OR_RETURN(const Listener listener, Listen());
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    const int error = errno;
    ::close(listener.fd);
    return ErrnoStatus(error, "no eventfd for a tunnel");
  }
  return std::unique_ptr<Tunnel>(
      new Tunnel(credentials, clock, std::move(options), listener.fd, wake, listener.port));
}

Tunnel::Tunnel(CredentialSource* credentials, const Clock* clock, TunnelOptions options,
               int listener, int wake, uint16_t port)
    : credentials_(credentials),
      clock_(clock),
      options_(std::move(options)),
      listener_(listener),
      wake_(wake),
      port_(port),
      thread_([this](const std::stop_token& stop) { Accept(stop); }) {}

Tunnel::~Tunnel() {
  thread_.request_stop();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
  thread_.join();
  {
    const MutexLock lock(&mutex_);
    for (Carried& one_carried : carried_) one_carried.thread.request_stop();
  }
  // A thread that ends takes the lock, so it is joined without it.
  for (;;) {
    std::jthread last;
    {
      const MutexLock lock(&mutex_);
      if (carried_.empty()) break;
      last = std::move(carried_.front().thread);
    }
    last.join();
    const MutexLock lock(&mutex_);
    carried_.pop_front();
  }
  ::close(listener_);
  ::close(wake_);
}

absl::Status Tunnel::last_error() const {
  const MutexLock lock(&mutex_);
  return last_error_;
}

void Tunnel::Accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> fds{{{listener_, POLLIN, 0}, {wake_, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    Join();
    const int local = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (local >= 0) Carry(local);
  }
}

void Tunnel::Join() {
  const MutexLock lock(&mutex_);
  carried_.remove_if([](const Carried& one) { return one.has_ended; });
}

void Tunnel::Carry(int local) {
  const MutexLock lock(&mutex_);
  if (carried_.size() >= options_.connections_max) {
    ::close(local);
    last_error_ = absl::ResourceExhaustedError(
        fmt::format("a tunnel carries at most {} connections", options_.connections_max));
    return;
  }
  Carried* const own = &carried_.emplace_back();
  own->thread = std::jthread([this, own, local](const std::stop_token& stop) {
    const absl::Status status = CarryOne(local, stop);
    const MutexLock own_lock(&mutex_);
    if (!absl::IsCancelled(status)) last_error_ = status;
    own->has_ended = true;
  });
}

absl::Status Tunnel::CarryOne(int local, const std::stop_token& stop) const {
  absl::StatusOr<std::string> pod = options_.find_pod();
  if (!pod.ok()) {
    ::close(local);
    return pod.status();
  }
  return ForwardPort(credentials_, clock_,
                     {.ns = options_.ns, .pod = *std::move(pod), .port = options_.port}, local,
                     options_.forward, stop);
}

}  // namespace muster::kubernetes
