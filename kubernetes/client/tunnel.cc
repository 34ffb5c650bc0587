#include "kubernetes/client/tunnel.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace muster::kubernetes {
namespace {

constexpr int kBacklog = 64;

struct Listener {
  OwnedFd fd;
  uint16_t port = 0;
};

absl::StatusOr<Listener> Listen() {
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (fd.get() >= 0 && ::bind(fd.get(), any, size) == 0 && ::listen(fd.get(), kBacklog) == 0 &&
      ::getsockname(fd.get(), any, &size) == 0) {
    return Listener{.fd = std::move(fd), .port = ntohs(address.sin_port)};
  }
  return ErrnoStatus(errno, "no port on 127.0.0.1 for a tunnel");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tunnel>> Tunnel::Open(CredentialSource* credentials,
                                                     const Clock* clock, TunnelOptions options) {
  MUSTER_ASSIGN_OR_RETURN(Listener listener, Listen());
  WakeFd wake;
  if (wake.get() < 0) return ErrnoStatus(errno, "no eventfd for a tunnel");
  return std::unique_ptr<Tunnel>(new Tunnel(credentials, clock, std::move(options),
                                            std::move(listener.fd), std::move(wake),
                                            listener.port));
}

Tunnel::Tunnel(CredentialSource* credentials, const Clock* clock, TunnelOptions options,
               OwnedFd listener, WakeFd wake, uint16_t port)
    : credentials_(credentials),
      clock_(clock),
      options_(std::move(options)),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      port_(port),
      thread_([this](const std::stop_token& stop) { Accept(stop); }) {}

Tunnel::~Tunnel() {
  thread_.request_stop();
  wake_.Wake();
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
}

absl::Status Tunnel::last_error() const {
  const MutexLock lock(&mutex_);
  return last_error_;
}

void Tunnel::Accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> fds{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    Join();
    OwnedFd local(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (local.get() >= 0) Carry(std::move(local));
  }
}

void Tunnel::Join() {
  const MutexLock lock(&mutex_);
  carried_.remove_if([](const Carried& one) { return one.has_ended; });
}

void Tunnel::Carry(OwnedFd local) {
  const MutexLock lock(&mutex_);
  if (carried_.size() >= options_.connections_max) {
    last_error_ = absl::ResourceExhaustedError(
        fmt::format("a tunnel carries at most {} connections", options_.connections_max));
    return;
  }
  Carried* const own = &carried_.emplace_back();
  own->thread =
      std::jthread([this, own, local = std::move(local)](const std::stop_token& stop) mutable {
        const absl::Status status = CarryOne(std::move(local), stop);
        const MutexLock own_lock(&mutex_);
        if (!absl::IsCancelled(status)) last_error_ = status;
        own->has_ended = true;
      });
}

absl::Status Tunnel::CarryOne(OwnedFd local, const std::stop_token& stop) const {
  absl::StatusOr<std::string> pod = options_.find_pod();
  MUSTER_RETURN_IF_ERROR(pod.status());
  return ForwardPort(credentials_, clock_,
                     {.ns = options_.ns, .pod = *std::move(pod), .port = options_.port},
                     std::move(local), options_.forward, stop);
}

}  // namespace muster::kubernetes
