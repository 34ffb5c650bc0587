#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

/// Reads a whole file of at most `bytes_max` bytes. Errors name the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t bytes_max);

/// Writes `contents` so that after a crash the path holds either the old or the new contents,
/// whole: a temporary file beside it, fsync, rename, fsync of the folder. Errors (disk full among
/// them) name the path and leave the old file.
absl::Status WriteFileAtomically(const std::string& path, std::string_view contents);

/// fsync of a file or a folder by path.
absl::Status SyncPath(const std::string& path);

/// mkdir -p; the entries of what it makes are durable.
absl::Status MakeDirectories(const std::string& path);

/// A read-only memory map of a file; empty files give an empty view. Movable, not copyable.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace muster
