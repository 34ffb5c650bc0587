#include "net/ring_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace muster::net {
namespace {

/// Both controls; the rings begin behind it.
constexpr size_t kControlBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status CheckRingSize(size_t bytes) {
  if (std::has_single_bit(bytes) && bytes >= RingMemory::kRingBytesMin &&
      bytes <= RingMemory::kRingBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("a ring cannot have {} bytes", bytes));
}

size_t FileBytes(size_t ring_bytes) {
  return kControlBytes + 2 * ring_bytes;
}

/// Each ring is mapped twice, one behind the other.
size_t MappedBytes(size_t ring_bytes) {
  return kControlBytes + 4 * ring_bytes;
}

/// Room for one descriptor, which is sent together with one byte.
union ControlBuffer {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

}  // namespace

RingMemory::RingMemory(OwnedFd memory, size_t ring_bytes)
    : memory_(std::move(memory)), ring_bytes_(ring_bytes) {}

RingMemory::RingMemory(RingMemory&& other) noexcept {
  *this = std::move(other);
}

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(ring_bytes_, other.ring_bytes_);
  std::swap(base_, other.base_);
  return *this;
}

RingMemory::~RingMemory() {
  if (base_ != nullptr) ::munmap(base_, MappedBytes(ring_bytes_));
}

absl::StatusOr<RingMemory> RingMemory::Make(size_t ring_bytes) {
  MUSTER_RETURN_IF_ERROR(CheckRingSize(ring_bytes));
  OwnedFd memory(::memfd_create("muster-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.get() < 0) return ErrnoStatus(errno, "cannot make shared memory");
  if (::ftruncate(memory.get(), static_cast<off_t>(FileBytes(ring_bytes))) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return ErrnoStatus(errno, "cannot size shared memory");
  }
  RingMemory made(std::move(memory), ring_bytes);
  MUSTER_RETURN_IF_ERROR(made.Map());
  return made;
}

absl::StatusOr<RingMemory> RingMemory::Open(OwnedFd memory, size_t ring_bytes) {
  MUSTER_RETURN_IF_ERROR(CheckRingSize(ring_bytes));
  // Without the seals, the peer could truncate the file, and the next access would be a SIGBUS.
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError("the shared memory of the peer is not sealed");
  }
  struct stat info{};
  if (::fstat(memory.get(), &info) != 0) return ErrnoStatus(errno, "cannot look at shared memory");
  if (static_cast<uint64_t>(info.st_size) != FileBytes(ring_bytes)) {
    return absl::InvalidArgumentError(
        fmt::format("the shared memory of the peer has {} bytes, not the {} of two rings of {}",
                    info.st_size, FileBytes(ring_bytes), ring_bytes));
  }
  RingMemory opened(std::move(memory), ring_bytes);
  MUSTER_RETURN_IF_ERROR(opened.Map());
  opened.CloseDescriptor();
  return opened;
}

absl::Status RingMemory::Map() {
  const int fd = memory_.get();
  void* const base = ::mmap(nullptr, MappedBytes(ring_bytes_), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return ErrnoStatus(errno, "cannot map shared memory");
  base_ = static_cast<std::byte*>(base);
  const auto map = [&](size_t at, size_t bytes, size_t from) {
    return ::mmap(base_ + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                  static_cast<off_t>(from)) != MAP_FAILED;
  };
  bool mapped = map(0, kControlBytes, 0);
  for (size_t ring = 0; ring < 2; ++ring) {
    const size_t from = kControlBytes + ring * ring_bytes_;
    const size_t at = kControlBytes + 2 * ring * ring_bytes_;
    mapped = mapped && map(at, ring_bytes_, from) && map(at + ring_bytes_, ring_bytes_, from);
  }
  return mapped ? absl::OkStatus() : ErrnoStatus(errno, "cannot map shared memory");
}

RingSpace RingMemory::Space(size_t number) const {
  // Fresh pages are zeros, and a control begins with zeros.
  static_assert(2 * sizeof(RingControl) <= kControlBytes);
  return {.control = reinterpret_cast<RingControl*>(base_) + number,
          .data = base_ + kControlBytes + 2 * number * ring_bytes_,
          .capacity = ring_bytes_};
}

absl::Status SendDescriptor(int socket, int memory) {
  char byte = 0;
  iovec piece{&byte, 1};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &memory, sizeof(int));
  if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("cannot hand shared memory over: {}", std::strerror(errno)));
}

absl::StatusOr<OwnedFd> ReceiveDescriptor(int socket) {
  char byte = 0;
  iovec piece{&byte, 1};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_LEN(sizeof(int));  // room for one and no more
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    return absl::UnavailableError("shared memory has not come yet");
  }
  if (got != 1) return absl::InvalidArgumentError("the peer closed instead of sharing memory");
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return absl::InvalidArgumentError("the peer sent something else than shared memory");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
  return OwnedFd(fd);
}

}  // namespace muster::net
