#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace muster {

/// A file of this machine that an ObjectStore lends: to be filled, or to be read. Movable, not
/// copyable.
class LocalFile {
 public:
  /// A file without a name in the folder for temporary files: it is gone with its object, and even
  /// after a crash. kResourceExhausted: the disk is full.
  static absl::StatusOr<LocalFile> Nameless();
  /// The file at `path`, which the end of the object removes.
  static LocalFile Removed(std::string path) { return {std::move(path), -1, true}; }
  /// The file at `path`, which stays.
  static LocalFile Kept(std::string path) { return {std::move(path), -1, false}; }
  LocalFile(LocalFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        remove_(std::exchange(other.remove_, false)) {}
  LocalFile& operator=(LocalFile&&) = delete;
  ~LocalFile();

  /// Can be opened as long as the object lives.
  const std::string& path() const { return path_; }
  /// Of a nameless file; otherwise -1.
  int fd() const { return fd_; }
  /// The file stays, for example because it has another name now.
  void Keep() { remove_ = false; }

 private:
  LocalFile(std::string path, int fd, bool remove)
      : path_(std::move(path)), fd_(fd), remove_(remove) {}
  std::string path_;
  int fd_;
  bool remove_;
};

}  // namespace muster
