#include "master/sources/lines/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/status.h"

namespace muster {

absl::StatusOr<FileReader> FileReader::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  return FileReader(path, fd);
}

FileReader::FileReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileReader::~FileReader() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<uint64_t> FileReader::Size() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return ErrnoStatus(errno, fmt::format("cannot stat {}", path_));
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<size_t> FileReader::ReadAt(uint64_t offset, std::span<char> buffer) const {
  size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t got = ::pread(fd_, buffer.data() + filled, buffer.size() - filled,
                                static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path_));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return filled;
}

muster::ReadAt FileReader::AsReadAt() const {
  return [this](uint64_t offset, std::span<char> buffer) { return ReadAt(offset, buffer); };
}

absl::StatusOr<SourcePin> PinFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  auto pin = PinSource(bytes, file.AsReadAt());
  if (!pin.ok() && pin.status().code() == absl::StatusCode::kAborted) {
    return Annotate(pin.status(), path);
  }
  return pin;
}

}  // namespace muster
