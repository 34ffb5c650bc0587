#include "host/processes/log_times.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "base/descriptors.h"
#include "base/file.h"

namespace muster {
namespace {

/// If a log of 16 MiB gets a short line each second, it has about 4 MiB of times.
constexpr uint64_t kTimesBytesMax = 32 << 20;

struct NotedTime {
  uint64_t position = 0;
  int64_t second = 0;
};

/// Reads lines "POSITION SECONDS\n" and appends them to `noted`. A line that a kill has cut off is
/// left out.
void ReadTimes(const std::string& path, std::vector<NotedTime>* noted) {
  const std::string text = ReadFile(path, kTimesBytesMax).value_or("");
  std::string_view rest = text;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    const char* const line_end = rest.data() + end;
    NotedTime time;
    const auto [blank, error] = std::from_chars(rest.data(), line_end, time.position);
    if (error != std::errc() || blank == line_end) continue;
    if (std::from_chars(blank + 1, line_end, time.second).ec == std::errc()) noted->push_back(time);
  }
}

int64_t SecondOf(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).count();
}

}  // namespace

void LogTimes::Note(uint64_t position, WallTime now) {
  const int64_t second = SecondOf(now);
  if (second == noted_s_) return;
  noted_s_ = second;
  const OwnedFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (fd.get() < 0) return;
  const std::string line = fmt::format("{} {}\n", position, second);
  [[maybe_unused]] const ssize_t written = ::write(fd.get(), line.data(), line.size());
}

void LogTimes::Rotate() {
  ::rename(path_.c_str(), (path_ + ".1").c_str());
  noted_s_ = -1;
}

std::optional<uint64_t> PositionSince(const std::string& log_path, WallTime since, uint64_t end) {
  std::vector<NotedTime> noted;
  ReadTimes(log_path + ".times.1", &noted);
  ReadTimes(log_path + ".times", &noted);
  if (noted.empty()) return std::nullopt;
  for (const NotedTime& time : noted) {
    if (time.second >= SecondOf(since)) return time.position;
  }
  return end;
}

}  // namespace muster
