#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "sharding/lines/source_pin.h"

namespace muster {

/// A file opened for reading at offsets. Errors name the path. Thread-safe after Open.
class FileReader {
 public:
  static absl::StatusOr<FileReader> Open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  /// The size now.
  absl::StatusOr<uint64_t> Size() const;
  /// Fills `buffer` from `offset` on; returns the bytes read, fewer only at the end of the file.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> buffer) const;
  /// The same as a function, which must not outlive the reader.
  muster::ReadAt AsReadAt() const;

 private:
  FileReader(std::string path, int fd);
  std::string path_;
  int fd_;
};

/// Opens the file and makes its pin.
absl::StatusOr<SourcePin> PinFile(const std::string& path);

}  // namespace muster
