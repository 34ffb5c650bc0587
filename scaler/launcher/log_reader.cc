#include "scaler/launcher/log_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

/// A reader that meets so many rotations in a row takes what it has.
constexpr int kReadTries = 4;

/// One of the two files, open.
struct LogFile {
  int fd = -1;
  uint64_t inode = 0;
  uint64_t bytes = 0;
};

LogFile OpenLog(const std::string& path) {
  LogFile file{.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info;
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return file;
  file.inode = info.st_ino;
  file.bytes = static_cast<uint64_t>(info.st_size);
  return file;
}

/// Appends [begin, begin + bytes) of the file, as far as it is there.
void AppendBytes(const LogFile& file, uint64_t begin, uint64_t bytes, std::string* text) {
  const size_t before = text->size();
  text->resize(before + bytes);
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = ::pread(file.fd, text->data() + before + filled, bytes - filled,
                                static_cast<off_t>(begin + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  text->resize(before + filled);
}

/// The log as it was at one moment: what the older file and the present one hold, one after the
/// other, from the position `oldest` on.
struct LogView {
  LogFile older;
  LogFile present;
  uint64_t base = 0;  // position of the present file's first byte

  uint64_t oldest() const { return base - std::min(base, older.bytes); }
  uint64_t end() const { return base + present.bytes; }
  void Close() const {
    ::close(older.fd);
    ::close(present.fd);
  }
  std::string Read(uint64_t begin, uint64_t bytes_max) const {
    std::string text;
    const uint64_t stop = std::min(end(), begin + bytes_max);
    if (begin < base) {
      AppendBytes(older, begin - oldest(), std::min(stop, base) - begin, &text);
      begin = base;
    }
    if (begin < stop) AppendBytes(present, begin - base, stop - begin, &text);
    return text;
  }
};

/// The caller closes both files.
LogView OpenView(const std::string& path) {
  LogView view;
  for (int tries = 0; tries < kReadTries; ++tries) {
    view = {.older = OpenLog(path + ".1"), .present = OpenLog(path), .base = ReadLogBase(path)};
    struct stat now;
    const bool rotated = ::stat(path.c_str(), &now) == 0 && now.st_ino != view.present.inode;
    if (tries + 1 == kReadTries || (!rotated && view.base == ReadLogBase(path))) break;
    view.Close();
  }
  if (view.older.fd >= 0 && view.base == 0) view.base = view.older.bytes;
  return view;
}

void SplitLines(std::string_view text, LogPiece* piece, uint32_t lines_max) {
  while (piece->lines.size() < lines_max) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos) return;
    piece->lines.emplace_back(text.substr(0, newline));
    piece->next_offset += newline + 1;
    text.remove_prefix(newline + 1);
  }
}

LogPiece ReadForward(const LogView& view, uint64_t offset, const LogQuestion& question) {
  LogPiece piece;
  piece.skipped = offset < view.oldest() || offset > view.end();
  piece.offset = piece.next_offset = piece.skipped ? view.oldest() : offset;
  const std::string text = view.Read(piece.offset, question.bytes_max);
  SplitLines(text, &piece, question.lines);
  if (piece.lines.empty() && text.size() == question.bytes_max) {
    piece.lines.push_back(text);
    piece.next_offset += text.size();
  }
  return piece;
}

LogPiece ReadTail(const LogView& view, const LogQuestion& question) {
  LogPiece piece;
  const uint64_t kept = view.end() - view.oldest();
  uint64_t begin = view.end() - std::min(kept, question.bytes_max);
  std::string text = view.Read(begin, question.bytes_max);
  if (begin > view.oldest()) {
    const size_t newline = text.find('\n');
    const size_t cut = newline == std::string::npos ? text.size() : newline + 1;
    text.erase(0, cut);
    begin += cut;
  }
  text.resize(text.rfind('\n') + 1);
  size_t at = text.size();
  for (uint32_t i = 0; i < question.lines && at > 0; ++i) {
    const size_t newline = at < 2 ? std::string::npos : text.rfind('\n', at - 2);
    at = newline == std::string::npos ? 0 : newline + 1;
  }
  piece.offset = piece.next_offset = begin + at;
  SplitLines(std::string_view(text).substr(at), &piece, question.lines);
  return piece;
}

}  // namespace

std::string LogBasePath(const std::string& path) {
  return path + ".base";
}

uint64_t ReadLogBase(const std::string& path) {
  const std::string text = ReadFile(LogBasePath(path), 64).value_or("");
  uint64_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

void WriteLogBase(const std::string& path, uint64_t bytes) {
  const std::string fresh = LogBasePath(path) + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const std::string text = std::to_string(bytes) + "\n";
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!written || ::rename(fresh.c_str(), LogBasePath(path).c_str()) != 0) RemoveFile(fresh);
}

LogFollower::LogFollower(std::string path) : path_(std::move(path)) {
  const LogView view = OpenView(path_);
  position_ = view.end();
  view.Close();
}

std::string LogFollower::Next(uint64_t bytes_max) {
  const LogView view = OpenView(path_);
  absl::Cleanup close_files = [&view] { view.Close(); };
  position_ = std::max(position_, view.oldest());
  // Shorter than it was: somebody made it anew.
  if (position_ > view.end()) position_ = view.oldest();
  std::string text = view.Read(position_, bytes_max);
  position_ += text.size();
  return text;
}

absl::StatusOr<LogPiece> ReadLog(const std::string& path, const LogQuestion& question) {
  const LogView view = OpenView(path);
  absl::Cleanup close_files = [&view] { view.Close(); };
  if (view.present.fd < 0 && view.older.fd < 0) {
    return absl::NotFoundError(fmt::format("there is no log {}", path));
  }
  return question.offset.has_value() ? ReadForward(view, *question.offset, question)
                                     : ReadTail(view, question);
}

}  // namespace muster
