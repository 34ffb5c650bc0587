#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

/// The folder of the sockets at which supervising processes listen. There is one for each start of
/// a node: `<node>.<start>.sock`. They are reached through an open descriptor of the folder,
/// because the path of a socket may have only 107 bytes. Movable, not copyable.
class NodeSockets {
 public:
  /// Creates the folder if it is missing. Errors name it.
  static absl::StatusOr<NodeSockets> Open(const std::string& folder);
  NodeSockets(NodeSockets&& other) noexcept
      : folder_(std::move(other.folder_)), fd_(std::exchange(other.fd_, -1)) {}
  NodeSockets& operator=(NodeSockets&&) = delete;
  ~NodeSockets();

  /// A listening socket, closed on exec. It replaces one that was left there.
  absl::StatusOr<int> Listen(const std::string& node, uint32_t start) const;
  /// A connection, closed on exec. It does not wait for the other side. NotFound if there is no
  /// socket, or if no process listens.
  absl::StatusOr<int> Connect(const std::string& node, uint32_t start) const;
  void Remove(const std::string& node, uint32_t start) const;
  /// Node and start of every socket, sorted. Other files are ignored.
  std::vector<std::pair<std::string, uint32_t>> List() const;

 private:
  NodeSockets(std::string folder, int fd) : folder_(std::move(folder)), fd_(fd) {}
  std::string folder_;
  int fd_;
};

}  // namespace muster
