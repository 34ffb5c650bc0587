#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace muster {

/// A local file that an ObjectStore lends, in order to be filled or read. Movable, not copyable.
class LocalFile {
 public:
  /// A file without a name, in the folder for temporary files. It is gone when the object is, even
  /// after a crash. kResourceExhausted if the disk is full.
  static absl::StatusOr<LocalFile> Nameless();
  /// The file at `path`. The destructor removes it.
  static LocalFile Removed(std::string path) { return {std::move(path), -1, true}; }
  /// The file at `path`, which stays.
  static LocalFile Kept(std::string path) { return {std::move(path), -1, false}; }
  LocalFile(LocalFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        remove_(std::exchange(other.remove_, false)) {}
  LocalFile& operator=(LocalFile&&) = delete;
  ~LocalFile();

  /// The file can be opened by this path as long as the object lives.
  const std::string& path() const { return path_; }
  /// The descriptor of a nameless file; otherwise -1.
  int fd() const { return fd_; }
  /// Keeps the file, for example because it has another name now.
  void Keep() { remove_ = false; }

 private:
  LocalFile(std::string path, int fd, bool remove)
      : path_(std::move(path)), fd_(fd), remove_(remove) {}
  std::string path_;
  int fd_;
  bool remove_;
};

}  // namespace muster
