// Preloaded into processes by tests: while the file $FULL_DISK_FLAG exists, writes to files below
// $FULL_DISK_FOLDER fail as on a full disk. If it begins with "h", they wait until it is gone, as
// on a disk behind a network that is away. Works where nothing can be mounted.

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool Hangs(const char* flag) {
  char first = 0;
  const int fd = ::open(flag, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool hangs = ::read(fd, &first, 1) == 1 && first == 'h';
  ::close(fd);
  return hangs;
}

/// Waits while the disk of the file hangs. True if it is full.
bool Full(int fd) {
  const char* flag = std::getenv("FULL_DISK_FLAG");
  const char* folder = std::getenv("FULL_DISK_FOLDER");
  if (flag == nullptr || folder == nullptr || ::access(flag, F_OK) != 0) return false;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof(path));
  const size_t length = std::strlen(folder);
  if (size <= static_cast<ssize_t>(length) || std::strncmp(path, folder, length) != 0) return false;
  while (Hangs(flag)) ::poll(nullptr, 0, /*timeout ms*/ 10);
  return ::access(flag, F_OK) == 0;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] ssize_t write(int fd, const void* data, size_t size) {
  static auto* const next = Next<ssize_t(int, const void*, size_t)>("write");
  if (!Full(fd)) return next(fd, data, size);
  errno = ENOSPC;
  return -1;
}

extern "C" [[gnu::visibility("default")]] ssize_t pwrite(int fd, const void* data, size_t size,
                                                         off_t offset) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (!Full(fd)) return next(fd, data, size, offset);
  errno = ENOSPC;
  return -1;
}

extern "C" [[gnu::visibility("default")]] ssize_t pwrite64(int fd, const void* data, size_t size,
                                                           off64_t offset) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  if (!Full(fd)) return next(fd, data, size, offset);
  errno = ENOSPC;
  return -1;
}
