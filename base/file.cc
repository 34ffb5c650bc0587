#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/failpoint.h"
#include "base/file_observer.h"
#include "base/status.h"

namespace muster {
namespace {

#if MUSTER_WITH_FAILPOINTS
std::atomic<FileObserver*> the_observer{nullptr};

template <typename Tell>
void Observe(Tell tell) {
  if (FileObserver* const observer = the_observer.load(std::memory_order_relaxed)) tell(observer);
}
#else
template <typename Tell>
void Observe(Tell) {}
#endif

/// Calls open(2) for writing, and tells the observer if the file is new.
int OpenForWriting(const std::string& path, int flags, mode_t mode = 0644) {
  Observe([&](FileObserver* observer) {
    if ((flags & O_TRUNC) != 0 || ::access(path.c_str(), F_OK) != 0) observer->Create(path);
  });
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode);
}

absl::Status WriteAllAt(int fd, const std::string& path, uint64_t offset, std::string_view bytes) {
  Observe([&](FileObserver* observer) { observer->Write(path, offset, bytes); });
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, fmt::format("cannot write {}", path));
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

absl::Status SyncFd(int fd, const std::string& path) {
  Observe([&](FileObserver* observer) { observer->Sync(path); });
  if (::fsync(fd) != 0) return ErrnoStatus(errno, fmt::format("cannot sync {}", path));
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

#if MUSTER_WITH_FAILPOINTS
void ObserveFiles(FileObserver* observer) {
  the_observer.store(observer);
}
#endif

absl::Status SyncPath(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  return SyncFd(fd, path);
}

absl::Status RenamePath(const std::string& from, const std::string& to) {
  Observe([&](FileObserver* observer) { observer->Rename(from, to); });
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot rename {} to {}", from, to));
}

absl::Status LinkPath(const std::string& from, const std::string& to) {
  Observe([&](FileObserver* observer) { observer->Link(from, to); });
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot create {}", to));
}

void RemoveFile(const std::string& path) {
  Observe([&](FileObserver* observer) { observer->Remove(path); });
  ::unlink(path.c_str());
}

absl::StatusOr<bool> MakeDirectory(const std::string& path) {
  Observe([&](FileObserver* observer) { observer->MakeFolder(path); });
  std::error_code error;
  const bool made = std::filesystem::create_directory(path, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot create the folder {}", path));
  return made;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents,
                                 FileAccess access) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  const int fd = OpenForWriting(temporary, O_TRUNC, access == FileAccess::kOwnerOnly ? 0600 : 0644);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create {}", temporary));
  absl::Status status = MUSTER_FAILPOINT_STATUS("file.before-write");
  if (status.ok()) status = WriteAllAt(fd, temporary, 0, contents);
  if (status.ok()) status = MUSTER_FAILPOINT_STATUS("file.before-sync");
  if (status.ok()) status = SyncFd(fd, temporary);
  ::close(fd);
  if (status.ok()) status = MUSTER_FAILPOINT_STATUS("file.before-rename");
  if (status.ok()) status = RenamePath(temporary, path);
  if (!status.ok()) {
    RemoveFile(temporary);
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
  MUSTER_ASSIGN_OR_RETURN(const bool created, MakeDirectory(folder.string()));
  // An earlier process may have made the folder and died before the sync. If we may only search the
  // parent, that is no error.
  const absl::Status synced = SyncPath(parent.string());
  return created ? synced : absl::OkStatus();
}

std::string TemporaryFolder() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  return error || folder.empty() ? "/tmp" : folder;
}

absl::StatusOr<std::string> MakePrivateFolder(const std::string& parent, std::string_view name) {
  std::string path = fmt::format("{}/{}-XXXXXX", parent, name);
  if (::mkdtemp(path.data()) == nullptr) {
    return ErrnoStatus(errno, fmt::format("cannot create the folder {}", path));
  }
  Observe([&](FileObserver* observer) { observer->MakeFolder(path); });
  return path;
}

absl::Status MakePrivate(const std::string& folder) {
  if (::chmod(folder.c_str(), S_IRWXU) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot set the mode of {}", folder));
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path) {
  const int fd = OpenForWriting(path, 0);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create {}", path));
  return OutputFile(path, fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status OutputFile::WriteAt(uint64_t offset, std::string_view bytes) {
  return WriteAllAt(fd_, path_, offset, bytes);
}

void OutputFile::WriteBack(uint64_t offset, uint64_t bytes) {
  // A file system that cannot do this writes everything when it is synced.
  static_cast<void>(::sync_file_range(
      fd_, static_cast<off64_t>(offset), static_cast<off64_t>(bytes),
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
}

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  return InputFile(path, fd);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<size_t> InputFile::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path_));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
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
