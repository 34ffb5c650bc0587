#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace muster {

/// A descriptor that closes itself.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }  // -1 = none
  /// From now on the caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Wakes whoever polls its descriptor. Thread-safe.
class WakeFd {
 public:
  WakeFd();
  /// Readable after Wake(), until Clear(). -1: none could be had; then nobody is woken.
  int get() const { return fd_.get(); }
  void Wake() const;
  void Clear() const;

 private:
  OwnedFd fd_;
};

/// A descriptor of the process, readable when it has ended; none if there is no such process. glibc
/// has this call only since 2.36, and the wheel must load on 2.35.
OwnedFd OpenProcess(pid_t pid);

/// Sends a signal to the process of a descriptor from OpenProcess: never to another one that got
/// its pid since. False, and errno says why: it was not sent.
bool SignalProcess(const OwnedFd& process, int signal);

/// Closes every descriptor of this process except 0, 1, 2 and the non-negative ones in `kept`. So
/// descriptors that a library opened without close-on-exec are not inherited.
void CloseOthers(std::vector<int> kept);

/// Whether the descriptor is closed by an exec. False, and nothing has happened: it is not open.
bool SetCloseOnExec(int fd, bool on);

/// True if a process of our own user is at the other end of this UNIX socket. Another user may have
/// made a socket at a path that we use, or may be able to reach one of ours.
bool IsOfOurUser(int socket);

}  // namespace muster
