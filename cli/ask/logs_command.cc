#include "cli/ask/logs_command.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/show/log_lines.h"
#include "cli/show/moment.h"
#include "cli/show/output.h"
#include "host/processes/log_reader.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kFollowInterval{300};
constexpr uint64_t kLogBytesMax = 64 << 20;

std::set<std::string> NodesWithLogs(const StateDirectory& state) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state.logs(), error)) {
    if (entry.path().extension() == ".log") names.insert(entry.path().stem().string());
  }
  return names;
}

std::string JoinNames(const StateDirectory& state) {
  const std::set<std::string> names = NodesWithLogs(state);
  return names.empty() ? "none yet" : fmt::format("{}", fmt::join(names, ", "));
}

struct FollowedLog {
  LogLines lines;
  LogFollower follower;
};

/// The logs that are shown. If all are shown, a node that gets its first log meanwhile is added.
class ShownLogs {
 public:
  ShownLogs(const LogsOptions& options, StateDirectory state, std::optional<WallTime> since)
      : options_(options), state_(std::move(state)), since_(since) {
    form_ = options.nodes.size() == 1 ? LogForm::kAsItIs : LogForm::kWithNode;
    if (options.query.output == OutputFormat::kJson) form_ = LogForm::kJson;
  }

  /// Errors: NotFound if a node that was named has no log; nothing was printed then.
  absl::Status PrintEnds() {
    for (const std::string& node : options_.nodes) {
      const bool is_name = node.find('/') == std::string::npos;
      if (is_name && ReadLastLines(state_.LogOf(node), 0, 1).ok()) continue;
      return absl::NotFoundError(fmt::format("there is no log of node '{}'; nodes with a log: {}",
                                             node, JoinNames(state_)));
    }
    std::set<std::string> nodes(options_.nodes.begin(), options_.nodes.end());
    if (nodes.empty()) nodes = NodesWithLogs(state_);
    if (nodes.empty()) return absl::NotFoundError("no node of the job has a log yet");
    for (const std::string& node : nodes) MUSTER_RETURN_IF_ERROR(Begin(node, since_));
    return absl::OkStatus();
  }

  void PrintNews() {
    if (options_.nodes.empty()) {
      for (const std::string& node : NodesWithLogs(state_)) {
        if (logs_.contains(node)) continue;
        logs_.emplace(node, FollowedLog{{node, form_}, {state_.LogOf(node), 0}});
      }
    }
    for (auto& [node, log] : logs_) PrintData(log.lines.Take(log.follower.Next(kLogBytesMax)));
  }

  void Finish() {
    for (auto& [node, log] : logs_) PrintData(log.lines.Finish());
  }

 private:
  absl::Status Begin(const std::string& node, std::optional<WallTime> since) {
    const std::string path = state_.LogOf(node);
    absl::StatusOr<LogTail> tail = ReadLogTail(path, LinesOfEach(options_), since, kLogBytesMax);
    if (since.has_value() && absl::IsFailedPrecondition(tail.status())) {
      PrintNote(fmt::format("{}; all of it is shown", Message(tail.status())));
      return Begin(node, std::nullopt);
    }
    if (!tail.ok()) return tail.status();
    const auto log = logs_.emplace(node, FollowedLog{{node, form_}, {path, tail->end}}).first;
    PrintData(log->second.lines.Take(tail->text));
    return absl::OkStatus();
  }

  const LogsOptions& options_;
  StateDirectory state_;
  std::optional<WallTime> since_;
  LogForm form_ = LogForm::kAsItIs;
  std::map<std::string, FollowedLog> logs_;
};

}  // namespace

uint32_t LinesOfEach(const LogsOptions& options) {
  constexpr int64_t kAll = UINT32_MAX;
  if (options.lines.has_value()) {
    return static_cast<uint32_t>(*options.lines < 0 ? kAll : std::min(*options.lines, kAll));
  }
  if (!options.since.empty()) return kAll;
  return options.nodes.size() == 1 ? LogsOptions::kLinesOfOne : LogsOptions::kLinesOfEach;
}

int LogsCommand(const LogsOptions& options) {
  std::optional<WallTime> since;
  if (!options.since.empty()) {
    const absl::StatusOr<WallTime> time = ParseSince(options.since, SystemClock().Wall());
    if (!time.ok()) return PrintError(Annotate(time.status(), "--since"));
    since = *time;
  }
  absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  ShownLogs logs(options, *state, since);
  if (const absl::Status status = logs.PrintEnds(); !status.ok()) {
    return PrintError(Message(status), kExitUsage);
  }
  while (options.follow) {
    const bool running = state->ReadEndpoint().ok();
    logs.PrintNews();
    if (!running) break;
    SleepFor(kFollowInterval);
  }
  logs.Finish();
  return kExitSucceeded;
}

}  // namespace muster
