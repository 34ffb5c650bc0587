#include "host/processes/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/status.h"
#include "host/processes/log_file.h"
#include "host/processes/log_times.h"

namespace muster {
namespace {

/// After a node's last lines, muster's own lines (the stacks of all its threads) may take up to
/// this many bytes.
constexpr uint64_t kAsideBytes = 512 << 10;

/// After this many rotations in a row, a reader returns what it has.
constexpr int kReadTries = 4;

/// One of the two files. It is open.
struct LogFile {
  OwnedFd fd;
  uint64_t inode = 0;
  uint64_t bytes = 0;
};

LogFile OpenLog(const std::string& path) {
  LogFile file{.fd = OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  struct stat info;
  if (file.fd.get() < 0 || ::fstat(file.fd.get(), &info) != 0) return file;
  file.inode = info.st_ino;
  file.bytes = static_cast<uint64_t>(info.st_size);
  return file;
}

/// Appends [begin, begin + bytes) of the file, or less if the file ends before.
void AppendBytes(const LogFile& file, uint64_t begin, uint64_t bytes, std::string* text) {
  const size_t before = text->size();
  text->resize(before + bytes);
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = ::pread(file.fd.get(), text->data() + before + filled, bytes - filled,
                                static_cast<off_t>(begin + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  text->resize(before + filled);
}

/// The log at one moment: the contents of the older file and then of the present one, from the
/// position `oldest` on.
struct LogView {
  LogFile older;
  LogFile present;
  uint64_t base = 0;  // position of the present file's first byte

  uint64_t oldest() const { return base - std::min(base, older.bytes); }
  uint64_t end() const { return base + present.bytes; }
  bool exists() const { return present.fd.get() >= 0 || older.fd.get() >= 0; }
  uint64_t kept() const { return end() - oldest(); }
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

LogView OpenView(const std::string& path) {
  LogView view;
  for (int tries = 0; tries < kReadTries; ++tries) {
    view = {.older = OpenLog(path + ".1"), .present = OpenLog(path), .base = ReadLogBase(path)};
    struct stat now;
    const bool rotated = ::stat(path.c_str(), &now) == 0 && now.st_ino != view.present.inode;
    if (!rotated && view.base == ReadLogBase(path)) break;
  }
  if (view.older.fd.get() >= 0 && view.base == 0) view.base = view.older.bytes;
  return view;
}

/// The position in `text` at which its last `lines` lines begin.
size_t LastLinesBegin(std::string_view text, uint32_t lines) {
  if (lines == 0) return text.size();
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
  uint64_t begin = view.end() - std::min(view.kept(), question.bytes_max);
  std::string text = view.Read(begin, question.bytes_max);
  if (begin > view.oldest()) {
    const size_t newline = text.find('\n');
    const size_t cut = newline == std::string::npos ? text.size() : newline + 1;
    text.erase(0, cut);
    begin += cut;
  }
  text.resize(text.rfind('\n') + 1);
  const size_t at = LastLinesBegin(text, question.lines);
  piece.offset = piece.next_offset = begin + at;
  SplitLines(std::string_view(text).substr(at), &piece, question.lines);
  return piece;
}

}  // namespace

std::string LogFollower::Next(uint64_t bytes_max) {
  const LogView view = OpenView(path_);
  position_ = std::max(position_, view.oldest());
  // The file is shorter than before, so it was created again.
  if (position_ > view.end()) position_ = view.oldest();
  std::string text = view.Read(position_, bytes_max);
  position_ += text.size();
  return text;
}

absl::StatusOr<LogPiece> ReadLog(const std::string& path, const LogQuestion& question) {
  const LogView view = OpenView(path);
  if (!view.exists()) return absl::NotFoundError(fmt::format("there is no log {}", path));
  return question.offset.has_value() ? ReadForward(view, *question.offset, question)
                                     : ReadTail(view, question);
}

absl::StatusOr<std::string> ReadLastLines(const std::string& path, uint32_t lines,
                                          uint64_t bytes_max) {
  MUSTER_ASSIGN_OR_RETURN(LogTail tail, ReadLogTail(path, lines, std::nullopt, bytes_max));
  return std::move(tail.text);
}

absl::StatusOr<LogTail> ReadLogTail(const std::string& path, uint32_t lines,
                                    std::optional<WallTime> since, uint64_t bytes_max) {
  const LogView view = OpenView(path);
  if (!view.exists()) return absl::NotFoundError(fmt::format("there is no log {}", path));
  const uint64_t begin = view.end() - std::min(view.kept(), bytes_max);
  std::string text = view.Read(begin, bytes_max);
  if (since.has_value()) {
    const std::optional<uint64_t> position = PositionSince(path, *since, view.end());
    if (!position.has_value()) {
      return absl::FailedPreconditionError(
          fmt::format("nothing says when the lines of {} were written", path));
    }
    const size_t at = std::min<size_t>(*position - std::min(*position, begin), text.size());
    // If a line had begun before that time, all of it is shown. If it was complete by then, it is
    // not.
    const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    text.erase(0, newline == std::string::npos ? 0 : newline + 1);
  }
  return LogTail{.text = text.substr(LastLinesBegin(text, lines)), .end = view.end()};
}

std::string LastWords(const std::string& path, uint32_t lines, uint64_t bytes_max) {
  absl::StatusOr<std::string> text = ReadLastLines(path, UINT32_MAX, bytes_max + kAsideBytes);
  if (!text.ok()) return "";
  std::string_view words = *text;
  // The part of the last process begins at the newest mark that is at the beginning of a line.
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
  return own.substr(LastLinesBegin(own, lines));
}

}  // namespace muster
