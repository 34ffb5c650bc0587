#include "kubernetes/pods/pod_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/timestamp.h"

namespace muster::kubernetes {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kNsPerMicrosecond = 1'000;
/// The length of "2026-11-26T13:30:00.".
constexpr size_t kSecondsBytes = 20;
constexpr size_t kFractionDigits = 9;
/// The end of a container is known only in whole seconds.
constexpr uint64_t kEndSlackNs = 2 * kNsPerSecond;
/// Ask for more bytes than those of the lines, because timestamps need room, too.
constexpr uint64_t kBytesOverLines = 2;

/// The time in nanoseconds. None if the text is no timestamp.
std::optional<uint64_t> TimeOf(std::string_view stamp) {
  const std::optional<WallTime> time = ParseTimestamp(stamp);
  if (!time || time->count() < 0) return std::nullopt;
  uint64_t ns = static_cast<uint64_t>(time->count()) * kNsPerMicrosecond;
  uint64_t unit = kNsPerSecond;
  for (size_t i = 0; i < kFractionDigits && kSecondsBytes + i < stamp.size(); ++i) {
    const char digit = stamp[kSecondsBytes + i];
    if (stamp[kSecondsBytes - 1] != '.' || digit < '0' || digit > '9') break;
    unit /= 10;
    // Larger units are in `ns` already.
    if (unit < kNsPerMicrosecond) ns += static_cast<uint64_t>(digit - '0') * unit;
  }
  return ns;
}

}  // namespace

std::vector<StampedLine> ParseStampedLines(std::string_view log) {
  std::vector<StampedLine> lines;
  // The text after the last line break is not complete yet.
  for (size_t end; (end = log.find('\n')) != std::string_view::npos; log.remove_prefix(end + 1)) {
    const std::string_view line = log.substr(0, end);
    const size_t blank = std::min(line.find(' '), line.size());
    const std::optional<uint64_t> at = TimeOf(line.substr(0, blank));
    if (at) {
      lines.push_back({*at, std::string(line.substr(std::min(blank + 1, line.size())))});
    } else {
      lines.push_back({lines.empty() ? 0 : lines.back().at_ns, std::string(line)});
    }
  }
  return lines;
}

LogQuery QueryOf(const LogQuestion& question, uint32_t lines) {
  LogQuery query{.timestamps = true};
  query.bytes_max = kBytesOverLines * question.bytes_max;
  if (!question.offset) {
    query.tail_lines = lines;
    return query;
  }
  // The API accepts only whole seconds. PieceOf() drops lines from before the offset.
  const std::chrono::sys_seconds since{std::chrono::seconds(*question.offset / kNsPerSecond)};
  query.since_time = fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", since);
  return query;
}

bool MayHaveLinesAfter(const PodFacts& pod, uint64_t offset) {
  if (!pod.ended_at) return true;
  const uint64_t ended_ns = static_cast<uint64_t>(pod.ended_at->count()) * kNsPerMicrosecond;
  return offset < ended_ns + kEndSlackNs;
}

LogPiece PieceOf(std::vector<StampedLine> lines, const LogQuestion& question, bool is_cut) {
  const uint64_t after = question.offset.value_or(0);
  if (question.offset) {
    std::erase_if(lines, [after](const StampedLine& line) { return line.at_ns <= after; });
  }
  LogPiece piece{.offset = after, .next_offset = after};
  if (!question.offset && lines.size() > question.lines) {
    lines.erase(lines.begin(), lines.end() - question.lines);
  }
  if (lines.empty()) {
    // One second has more lines than a piece may have, so the rest of that second is skipped.
    piece.skipped = is_cut && question.offset.has_value();
    if (piece.skipped) piece.next_offset = (after / kNsPerSecond + 1) * kNsPerSecond - 1;
    return piece;
  }
  if (!question.offset) piece.offset = std::max<uint64_t>(lines.front().at_ns, 1) - 1;
  uint64_t bytes = 0;
  for (StampedLine& line : lines) {
    bytes += line.text.size();
    const bool full = piece.lines.size() >= question.lines || bytes > question.bytes_max;
    if (full && !piece.lines.empty() && line.at_ns != piece.next_offset) break;
    piece.next_offset = line.at_ns;
    piece.lines.push_back(std::move(line.text));
  }
  return piece;
}

absl::StatusOr<LogPiece> ReadPodLogs(
    const std::vector<PodFacts>& pods, const LogQuestion& question,
    const std::function<absl::StatusOr<std::string>(const std::string&, const LogQuery&)>& read) {
  std::vector<StampedLine> lines;
  bool is_cut = false;
  for (const PodFacts& pod : pods) {
    if (!question.offset && lines.size() >= question.lines) break;
    if (question.offset && !MayHaveLinesAfter(pod, *question.offset)) continue;
    LogQuery query = QueryOf(question, question.lines - static_cast<uint32_t>(lines.size()));
    query.container = pod.container;
    const absl::StatusOr<std::string> log = read(pod.name, query);
    const ApiErrorKind kind = KindOf(log.status());
    // The container has not begun, or the pod has just gone.
    if (kind == ApiErrorKind::kInvalid || kind == ApiErrorKind::kNotFound) continue;
    MUSTER_RETURN_IF_ERROR(log.status());
    is_cut |= log->size() >= *query.bytes_max;
    std::vector<StampedLine> older = ParseStampedLines(*log);
    lines.insert(lines.begin(), std::make_move_iterator(older.begin()),
                 std::make_move_iterator(older.end()));
  }
  return PieceOf(std::move(lines), question, is_cut);
}

}  // namespace muster::kubernetes
