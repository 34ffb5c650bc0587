#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

/// The folder of the sockets at which supervising processes listen, one for each start of a node:
/// `<node>.<start>.sock`. Reached through an open descriptor of the folder, because the path of a
/// socket may have 107 bytes only. Movable, not copyable.
class NodeSockets {
 public:
  /// Makes the folder when it is not there. Errors name it.
  static absl::StatusOr<NodeSockets> Open(const std::string& folder);
  NodeSockets(NodeSockets&& other) noexcept
      : folder_(std::move(other.folder_)), fd_(std::exchange(other.fd_, -1)) {}
  NodeSockets& operator=(NodeSockets&&) = delete;
  ~NodeSockets();

  /// A socket that listens, closed on exec. One that is left there is replaced.
  absl::StatusOr<int> Listen(const std::string& node, uint32_t start) const;
  /// A connection, closed on exec; does not wait for the other side. NotFound if there is no
  /// socket, or if no process listens.
  absl::StatusOr<int> Connect(const std::string& node, uint32_t start) const;
  void Remove(const std::string& node, uint32_t start) const;
  /// Node and start of every socket, sorted; other files are passed over.
  std::vector<std::pair<std::string, uint32_t>> List() const;

 private:
  NodeSockets(std::string folder, int fd) : folder_(std::move(folder)), fd_(fd) {}
  std::string folder_;
  int fd_;
};

}  // namespace muster
