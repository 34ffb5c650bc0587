#include "scaler/launcher/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "scaler/launcher/log_reader.h"

namespace muster {
namespace {

/// How much of muster's own may come after a node's last words: the stacks of all its threads.
constexpr uint64_t kAsideBytes = 512 << 10;

int OpenForAppending(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/// The position in `text` at which its last `lines` lines begin.
size_t LastLinesBegin(std::string_view text, uint32_t lines) {
  size_t end = text.size();
  if (end > 0 && text[end - 1] == '\n') --end;
  for (uint32_t i = 0; i < lines; ++i) {
    const size_t newline = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    if (newline == std::string_view::npos) return 0;
    end = newline;
  }
  return end + 1;
}

std::string WithoutAsides(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    if (!text.starts_with(kLogAside)) kept += text.substr(0, end);
    text.remove_prefix(end);
  }
  return kept;
}

}  // namespace

absl::StatusOr<RotatingLog> RotatingLog::Open(std::string path, uint64_t bytes_max) {
  const int fd = OpenForAppending(path);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open the log {}", path));
  struct stat info;
  const uint64_t bytes = ::fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  return RotatingLog(std::move(path), bytes_max, fd, bytes);
}

RotatingLog::RotatingLog(RotatingLog&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_max_(other.bytes_max_),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_) {}

RotatingLog& RotatingLog::operator=(RotatingLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_max_, other.bytes_max_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

RotatingLog::~RotatingLog() {
  if (fd_ >= 0) ::close(fd_);
}

void RotatingLog::Write(std::string_view bytes) {
  if (bytes_ > 0 && bytes_ + bytes.size() > bytes_max_) Rotate();
  while (!bytes.empty() && fd_ >= 0) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void RotatingLog::Rotate() {
  const std::string older = path_ + ".1";
  const uint64_t base = ReadLogBase(path_);
  if (::rename(path_.c_str(), older.c_str()) != 0) return;
  WriteLogBase(path_, base + bytes_);
  ::close(fd_);
  fd_ = OpenForAppending(path_);
  bytes_ = 0;
}

absl::StatusOr<std::string> ReadLastLines(const std::string& path, uint32_t lines,
                                          uint64_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, fmt::format("cannot stat {}", path));
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  std::string text(std::min(size, bytes_max), '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::pread(fd, text.data() + filled, text.size() - filled,
                                static_cast<off_t>(size - text.size() + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  if (lines == 0) return std::string();
  return text.substr(LastLinesBegin(text, lines));
}

std::string LastWords(const std::string& path, uint32_t lines, uint64_t bytes_max) {
  absl::StatusOr<std::string> text = ReadLastLines(path, UINT32_MAX, bytes_max + kAsideBytes);
  if (!text.ok()) return "";
  std::string_view words = *text;
  // The newest mark at the beginning of a line starts the last process's part.
  size_t mark = words.rfind(kLogMark);
  while (mark != std::string_view::npos && mark > 0 && words[mark - 1] != '\n') {
    mark = words.rfind(kLogMark, mark - 1);
  }
  if (mark != std::string_view::npos) {
    const size_t newline = words.find('\n', mark);
    words = newline == std::string_view::npos ? "" : words.substr(newline + 1);
  }
  std::string own = WithoutAsides(words);
  if (own.size() > bytes_max) own.erase(0, own.size() - bytes_max);
  return lines == 0 ? "" : own.substr(LastLinesBegin(own, lines));
}

}  // namespace muster
