#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/failpoint.h"
#include "base/status.h"

namespace muster {
namespace {

absl::Status WriteAll(int fd, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, fmt::format("cannot write {}", path));
    }
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  std::string contents;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    if (got == 0) return contents;
    contents.append(buffer, static_cast<size_t>(got));
    if (contents.size() > bytes_max) {
      return absl::ResourceExhaustedError(
          fmt::format("{} is larger than the limit of {} bytes", path, bytes_max));
    }
  }
}

absl::Status SyncPath(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  if (::fsync(fd) != 0) return ErrnoStatus(errno, fmt::format("cannot sync {}", path));
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create {}", temporary));
  absl::Status status = MUSTER_FAILPOINT_STATUS("file.before-write");
  if (status.ok()) status = WriteAll(fd, contents, temporary);
  if (status.ok()) status = MUSTER_FAILPOINT_STATUS("file.before-sync");
  if (status.ok() && ::fsync(fd) != 0) {
    status = ErrnoStatus(errno, fmt::format("cannot sync {}", temporary));
  }
  ::close(fd);
  if (status.ok()) status = MUSTER_FAILPOINT_STATUS("file.before-rename");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, fmt::format("cannot rename {} to {}", temporary, path));
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  MUSTER_FAILPOINT_OR_RETURN("file.after-rename");
  const std::string folder = std::filesystem::path(path).parent_path().string();
  MUSTER_RETURN_IF_ERROR(SyncPath(folder.empty() ? "." : folder));
  MUSTER_FAILPOINT("file.after-folder-sync");
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  std::filesystem::path folder(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "a/b/"
  const std::filesystem::path parent = folder.has_parent_path() ? folder.parent_path() : ".";
  std::error_code error;
  if (!std::filesystem::exists(parent, error) && !error) {
    MUSTER_RETURN_IF_ERROR(MakeDirectories(parent.string()));
  }
  const bool created = std::filesystem::create_directory(folder, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot create the folder {}", path));
  // Who made it earlier may have died before this; but a parent that may only be searched is fine.
  const absl::Status synced = SyncPath(parent.string());
  return created ? synced : absl::OkStatus();
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, fmt::format("cannot stat {}", path));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{} is not a regular file", path));
  }
  if (info.st_size == 0) return MappedFile(nullptr, 0);
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, fmt::format("cannot map {}", path));
  return MappedFile(static_cast<const char*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace muster
