#include "host/processes/node_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr std::string_view kSuffix = ".sock";
/// The queue may also hold connections of controllers that died before they were accepted.
constexpr int kBacklog = 128;

std::string NameOf(const std::string& node, uint32_t start) {
  return fmt::format("{}.{}{}", node, start, kSuffix);
}

absl::StatusOr<sockaddr_un> AddressOf(int folder_fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder_fd, name);
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        fmt::format("the name {} is too long for a socket; give the node a shorter name", name));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

absl::StatusOr<NodeSockets> NodeSockets::Open(const std::string& folder) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(folder));
  const int fd = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open the folder {}", folder));
  return NodeSockets(folder, fd);
}

NodeSockets::~NodeSockets() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<int> NodeSockets::Listen(const std::string& node, uint32_t start) const {
  const std::string name = NameOf(node, start);
  MUSTER_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(fd_, name));
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("{}: cannot create a socket", node));
  ::unlinkat(fd_, name.c_str(), 0);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    const int error = errno;
    ::close(fd);
    return ErrnoStatus(error, fmt::format("cannot listen at {}/{}", folder_, name));
  }
  return fd;
}

absl::StatusOr<int> NodeSockets::Connect(const std::string& node, uint32_t start) const {
  const std::string name = NameOf(node, start);
  MUSTER_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(fd_, name));
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("{}: cannot create a socket", node));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    ::close(fd);
    if (error == ECONNREFUSED || error == ENOENT) {
      return absl::NotFoundError(fmt::format("no process listens at {}/{}", folder_, name));
    }
    return ErrnoStatus(error, fmt::format("cannot connect to {}/{}", folder_, name));
  }
  return fd;
}

void NodeSockets::Remove(const std::string& node, uint32_t start) const {
  ::unlinkat(fd_, NameOf(node, start).c_str(), 0);
}

std::vector<std::pair<std::string, uint32_t>> NodeSockets::List() const {
  std::vector<std::pair<std::string, uint32_t>> sockets;
  DIR* folder = ::opendir(folder_.c_str());
  if (folder == nullptr) return sockets;
  absl::Cleanup close_folder = [folder] { ::closedir(folder); };
  while (const dirent* entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    name.remove_suffix(kSuffix.size());
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) continue;
    uint32_t start = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, start);
    if (error != std::errc() || rest != end) continue;
    sockets.emplace_back(std::string(name.substr(0, dot)), start);
  }
  std::sort(sockets.begin(), sockets.end());
  return sockets;
}

}  // namespace muster
