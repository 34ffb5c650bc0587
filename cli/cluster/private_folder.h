#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster::cluster {

/// A folder of mode 0700 below $XDG_RUNTIME_DIR or /tmp, for secrets that a command needs for a
/// short time. A child process removes it when this process ends, however it ends. Not thread-safe.
class PrivateFolder {
 public:
  /// Requires: no other thread exists, because this forks. Errors name the folder.
  static absl::StatusOr<std::unique_ptr<PrivateFolder>> Make();
  /// Waits until the folder is gone.
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, int life, pid_t remover)
      : path_(std::move(path)), life_(life), remover_(remover) {}

  const std::string path_;
  /// The end of a pipe that the child reads.
  const int life_;
  const pid_t remover_;
};

}  // namespace muster::cluster
