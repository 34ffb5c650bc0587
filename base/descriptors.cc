#include "base/descriptors.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/descriptor_limit.h"
#include "base/status.h"

namespace muster {
namespace {

/// Kernels before Linux 5.9 cannot close a range. There, descriptors above this number stay open.
constexpr unsigned kHighest = 4096;

void CloseRange(unsigned first, unsigned last) {
  if (first > last || ::close_range(first, last, 0) == 0) return;
  for (unsigned fd = first; fd <= std::min(last, kHighest); ++fd) ::close(static_cast<int>(fd));
}

}  // namespace

WakeFd::WakeFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void WakeFd::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof(one));
}

void WakeFd::Clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof(count));
}

OwnedFd OpenProcess(pid_t pid) {
  return OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool SignalProcess(const OwnedFd& process, int signal) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

void CloseOthers(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd < static_cast<int>(next)) continue;
    CloseRange(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
  }
  CloseRange(next, UINT_MAX);
}

bool SetCloseOnExec(int fd, bool on) {
  return fd >= 0 && ::fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) == 0;
}

absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t wanted) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return ErrnoStatus(errno, "cannot read the limit of open files");
  }
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  // If it may not be raised, the limit stays as it is.
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

bool IsOfOurUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid();
}

}  // namespace muster
