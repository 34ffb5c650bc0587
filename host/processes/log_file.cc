#include "host/processes/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

OwnedFd OpenForAppending(const std::string& path) {
  return OwnedFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

/// True if the last line of a file of `bytes` bytes has no line break.
bool EndsWithinLine(const std::string& path, uint64_t bytes) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char last = '\n';
  return bytes > 0 && ::pread(fd.get(), &last, 1, static_cast<off_t>(bytes - 1)) == 1 &&
         last != '\n';
}

std::string LogBasePath(const std::string& path) {
  return path + ".base";
}

/// If the file cannot be written, offsets start again at 0.
void WriteLogBase(const std::string& path, uint64_t bytes) {
  const std::string fresh = LogBasePath(path) + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const std::string text = std::to_string(bytes) + "\n";
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!written || ::rename(fresh.c_str(), LogBasePath(path).c_str()) != 0) RemoveFile(fresh);
}

}  // namespace

RotatingLog::RotatingLog(std::string path, uint64_t bytes_max, OwnedFd fd, uint64_t bytes,
                         bool within_line)
    : path_(std::move(path)),
      bytes_max_(bytes_max),
      fd_(std::move(fd)),
      base_(ReadLogBase(path_)),
      bytes_(bytes),
      within_line_(within_line),
      times_(path_) {}

absl::StatusOr<RotatingLog> RotatingLog::Open(std::string path, uint64_t bytes_max) {
  OwnedFd fd = OpenForAppending(path);
  if (fd.get() < 0) return ErrnoStatus(errno, fmt::format("cannot open the log {}", path));
  struct stat info;
  const uint64_t bytes = ::fstat(fd.get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  const bool within_line = EndsWithinLine(path, bytes);
  return RotatingLog(std::move(path), bytes_max, std::move(fd), bytes, within_line);
}

void RotatingLog::Write(std::string_view bytes, std::optional<WallTime> now) {
  if (bytes_ > 0 && bytes_ + bytes.size() > bytes_max_) Rotate();
  // The last rotation could not create the file, because the disk or the table of open files was
  // full.
  if (fd_.get() < 0) fd_ = OpenForAppending(path_);
  if (now.has_value() && !bytes.empty()) times_.Note(base_ + bytes_, *now);
  while (!bytes.empty() && fd_.get() >= 0) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes_ += static_cast<uint64_t>(written);
    within_line_ = bytes[static_cast<size_t>(written) - 1] != '\n';
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void RotatingLog::Rotate() {
  const std::string older = path_ + ".1";
  if (::rename(path_.c_str(), older.c_str()) != 0) return;
  times_.Rotate();
  base_ += bytes_;
  WriteLogBase(path_, base_);
  fd_ = OpenForAppending(path_);
  bytes_ = 0;
}

uint64_t ReadLogBase(const std::string& path) {
  const std::string text = ReadFile(LogBasePath(path), 64).value_or("");
  uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

}  // namespace muster
