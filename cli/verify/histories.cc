#include "cli/verify/histories.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "verify/workload/history.h"

namespace muster::verify {
namespace {

constexpr uint64_t kHistoryBytesMax = uint64_t{1} << 32;
/// The last applied step of any history is within this many bytes, because there are at most a few
/// attempts between two applied steps.
constexpr int64_t kEndBytes = 16 * 1024;

absl::Status ReadHistory(const std::string& path, Histories* histories) {
  MUSTER_ASSIGN_OR_RETURN(const ProcessName process, ProcessOfFile(path));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kHistoryBytesMax));
  WorkerRecoveries& recoveries = histories->recoveries;
  const HistoryVisitor visitor{
      .begin = [&](const ShardMark& mark) { recoveries.AddBegin(process, mark); },
      .attempt =
          [&](const Attempt& attempt) {
            histories->attempts.Add(attempt);
            recoveries.AddAttempt(process, attempt);
          },
      .finish = [&](const ShardMark& mark) { recoveries.AddFinish(process, mark); },
      .applied = [&](const AppliedStep& step) { histories->steps.Add(process, step); }};
  const size_t bad_line = ParseHistory(text, visitor);
  if (bad_line == 0) return absl::OkStatus();
  return absl::DataLossError(fmt::format("{}:{}: not a line of a history", path, bad_line));
}

/// The last applied step in a history that may still be written.
std::optional<uint64_t> LastAppliedIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const int64_t size = file.is_open() ? static_cast<int64_t>(file.tellg()) : 0;
  if (size <= 0) return std::nullopt;
  std::string end(static_cast<size_t>(std::min(size, kEndBytes)), '\0');
  file.seekg(size - static_cast<int64_t>(end.size()));
  file.read(end.data(), static_cast<std::streamsize>(end.size()));
  end.resize(static_cast<size_t>(file.gcount()));
  return LastApplied(end);
}

}  // namespace

absl::StatusOr<ProcessName> ProcessOfFile(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  const size_t dash = std::min(stem.rfind('-'), stem.size());
  ProcessName process{.node = stem.substr(0, dash)};
  const char* const begin = stem.data() + std::min(dash + 1, stem.size());
  const auto [end, error] = std::from_chars(begin, stem.data() + stem.size(), process.start);
  if (error != std::errc() || end != stem.data() + stem.size()) {
    return absl::InvalidArgumentError(fmt::format("{} is not named after a process", path));
  }
  return process;
}

absl::StatusOr<Histories> ReadHistories(const std::string& folder, const Workload& workload) {
  Histories histories{AttemptLog(workload), {}, {}};
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(folder));
  for (const std::string& path : paths) MUSTER_RETURN_IF_ERROR(ReadHistory(path, &histories));
  return histories;
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path().string());
  }
  if (error) return ErrnoStatus(error.value(), folder);
  std::ranges::sort(paths);
  return paths;
}

bool GroupWatch::IsWhole() {
  const absl::StatusOr<std::vector<std::string>> paths = FilesOf(histories_);
  if (!paths.ok()) return false;
  // By worker, its newest start and the last step of that.
  std::map<std::string, std::pair<uint64_t, std::optional<uint64_t>>> newest;
  for (const std::string& path : *paths) {
    const absl::StatusOr<ProcessName> process = ProcessOfFile(path);
    if (!process.ok()) continue;
    auto& [start, step] = newest[process->node];
    if (process->start >= start)
      std::tie(start, step) = std::pair(process->start, LastAppliedIn(path));
  }
  uint64_t last = 0;
  uint32_t further = 0;
  for (const auto& [node, known] : newest) {
    last = std::max(last, known.second.value_or(0));
    if (newest_before_.has_value() && known.second > newest_before_) ++further;
  }
  if (!newest_before_.has_value()) newest_before_ = last;
  return further >= workers_;
}

}  // namespace muster::verify
