#include "cli/show/progress.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "cli/show/epochs.h"
#include "cli/show/fit.h"
#include "cli/show/group_text.h"
#include "cli/show/output.h"
#include "cli/show/reasons.h"
#include "proto/messages/node_role.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kBlockInterval{200};
constexpr std::chrono::milliseconds kLineInterval{2'000};
constexpr size_t kBarCells = 24;

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// The index of the first epoch that is not done. If all are done, that of the last one.
size_t CurrentEpoch(const DatasetStatus& dataset) {
  size_t current = 0;
  while (current + 1 < dataset.epochs.size() &&
         dataset.epochs[current].records_done >= dataset.epochs[current].records_expected) {
    ++current;
  }
  return current;
}

std::string Bar(double percent) {
  const size_t full = std::min(kBarCells, static_cast<size_t>(percent / 100.0 * kBarCells));
  return "[" + std::string(full, '#') + std::string(kBarCells - full, '.') + "]";
}

/// Nobody knows how much of the dataset is still to come.
bool IsEndless(const DatasetStatus& dataset) {
  if (!dataset.stream || !dataset.stream->open) return false;
  const std::vector<TopicPartitionStatus>& partitions = dataset.stream->partitions;
  return partitions.empty() || std::ranges::any_of(partitions, [](const auto& partition) {
           return !partition.end.has_value();
         });
}

/// How much of an endless dataset was read: there is no whole to divide by.
std::string EndlessText(const EpochStatus& epoch) {
  const uint64_t behind =
      epoch.records_expected - std::min(epoch.records_expected, epoch.records_done);
  return fmt::format("{}, {} behind", CountText(epoch.records_done, "record"), CountText(behind));
}

std::optional<double> RemainingSeconds(const ProgressInput& input) {
  const Totals totals = TotalsOf(*input.status);
  const bool open = std::ranges::any_of(input.status->datasets, IsEndless);
  if (open || input.records_per_second <= 0 || totals.done >= totals.expected) return std::nullopt;
  return static_cast<double>(totals.expected - totals.done) / input.records_per_second;
}

std::vector<LineField> NodeFields(const ProgressInput& input) {
  std::vector<LineField> fields = {
      {fmt::format("ps {}/{}", input.servers_running, input.servers_wanted), 0},
      {fmt::format("  workers {}/{}", input.workers_running, input.workers_wanted), 1},
      {fmt::format("  restarts: master {}, scaler {}, ps {}, workers {}", input.master_restarts,
                   input.scaler_restarts, input.server_restarts, input.worker_restarts),
       3}};
  if (input.master_silent) fields.push_back({"  the master is silent", 2});
  return fields;
}

std::string StartingText(const ProgressInput& input) {
  return fmt::format("starting: waiting for the master, {} {}", DurationText(input.elapsed),
                     input.waiting_for.empty() ? "" : "(" + input.waiting_for + ")");
}

std::string JobLine(const ProgressInput& input, size_t columns) {
  const JobStatus& status = *input.status;
  return FitLine({{status.name, 0},
                  {fmt::format("  {}", ToString(status.state)), 1},
                  {fmt::format("  {}", DurationText(input.elapsed)), 2},
                  {"  " + RateText(input.records_per_second), 4},
                  {"  " + RemainingText(RemainingSeconds(input)), 3}},
                 columns);
}

std::string EpochLine(const DatasetStatus& dataset, size_t columns) {
  const EpochStatus& epoch = dataset.epochs[CurrentEpoch(dataset)];
  const double percent = Percent(epoch.records_done, epoch.records_expected);
  std::vector<LineField> fields = {
      {fmt::format("  {:<12} epoch {}/{}", dataset.name, epoch.epoch + 1, dataset.epochs_total),
       0}};
  if (IsEndless(dataset)) {
    fields.push_back({"  " + EndlessText(epoch), 1});
  } else {
    fields.push_back({" " + Bar(percent), 5});
    fields.push_back({fmt::format(" {:5.1f} %", percent), 1});
    fields.push_back({fmt::format("  {} / {} records", CountText(epoch.records_done),
                                  CountText(epoch.records_expected)),
                      3});
  }
  fields.push_back({fmt::format(", {} committed", CountText(epoch.records_committed)), 4});
  if (epoch.shards.failed > 0) {
    fields.push_back({", " + CountText(epoch.shards.failed, "FAILED shard"), 2});
  }
  return FitLine(std::move(fields), columns);
}

}  // namespace

void RateMeter::Add(TimePoint now, uint64_t count) {
  if (!readings_.empty() && count < readings_.back().second) readings_.clear();
  readings_.emplace_back(now, count);
  while (readings_.size() > 2 && now - readings_[1].first >= kWindow) readings_.pop_front();
}

double RateMeter::PerSecond() const {
  if (readings_.size() < 2) return 0;
  const std::chrono::duration<double> time = readings_.back().first - readings_.front().first;
  if (time.count() <= 0) return 0;
  return static_cast<double>(readings_.back().second - readings_.front().second) / time.count();
}

Totals TotalsOf(const JobStatus& status) {
  Totals totals;
  for (const DatasetStatus& dataset : status.datasets) {
    totals.expected += dataset.omitted_records_expected;
    totals.done += dataset.omitted_records_done;
    for (const EpochStatus& epoch : dataset.epochs) {
      totals.expected += epoch.records_expected;
      totals.done += epoch.records_done;
    }
  }
  return totals;
}

std::vector<std::string> WaitsOf(const std::vector<const NodeStatus*>& nodes) {
  Reasons reasons;
  for (const bool servers : {true, false}) {
    for (const NodeStatus* node : nodes) {
      const bool is_server = node->role == ToString(NodeRole::kServer);
      if (node->state != NodeState::kWaiting || is_server != servers) continue;
      reasons.Add(node->name, WaitText(node->wait, Printable(node->wait_reason)));
    }
  }
  std::vector<std::string> waits;
  for (const auto& [names, reason] : reasons.All()) {
    waits.push_back(fmt::format("waits for {}: {}", names, reason));
  }
  return waits;
}

std::vector<std::string> TroublesOf(const JobStatus& status) {
  std::vector<std::string> troubles;
  if (!IsTerminal(status.state)) {
    std::vector<const NodeStatus*> nodes;
    for (const NodeStatus& node : status.nodes) nodes.push_back(&node);
    troubles = WaitsOf(nodes);
    if (!status.reason.empty()) troubles.insert(troubles.begin(), Printable(status.reason));
  }
  for (const DatasetStatus& dataset : status.datasets) {
    if (!dataset.stream || IsTerminal(status.state)) continue;
    const StreamStatus& stream = *dataset.stream;
    if (!stream.trouble.empty()) {
      troubles.push_back(
          fmt::format("topic {} cannot be looked at: {}", stream.topic, Printable(stream.trouble)));
    }
    if (!stream.dead_letter_trouble.empty()) {
      troubles.push_back(fmt::format("topic {}: rejected records cannot be written: {}",
                                     stream.topic, Printable(stream.dead_letter_trouble)));
    }
  }
  for (const NodeStatus& node : status.nodes) {
    if (node.trouble.empty() || IsTerminal(status.state)) continue;
    troubles.push_back(
        fmt::format("{}: workers cannot connect: {}", node.name, Printable(node.trouble)));
  }
  return troubles;
}

std::string DurationText(std::chrono::milliseconds duration) {
  const int64_t seconds = duration.count() / 1000;
  if (seconds >= 3600) {
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string RateText(double records_per_second) {
  return CountText(static_cast<uint64_t>(records_per_second)) + " records/s";
}

std::string RemainingText(std::optional<double> seconds) {
  if (!seconds.has_value()) return "- left";
  const auto milliseconds = static_cast<int64_t>(std::min(*seconds, 1e9) * 1e3);
  return DurationText(std::chrono::milliseconds(milliseconds)) + " left";
}

std::string MillisecondsText(uint64_t milliseconds) {
  return fmt::format("{:.2f} s", static_cast<double>(milliseconds) / 1e3);
}

std::vector<std::string> ProgressBlock(const ProgressInput& input, size_t columns) {
  std::vector<std::string> lines;
  if (!input.status.has_value()) {
    lines.push_back(CutText(StartingText(input), columns));
  } else {
    const JobStatus& status = *input.status;
    lines.push_back(JobLine(input, columns));
    for (const std::string& trouble : TroublesOf(status)) {
      lines.push_back(CutText("  " + trouble, columns));
    }
    // Two columns are for the indent.
    const size_t room = columns == 0 ? 0 : std::max<size_t>(columns, 3) - 2;
    const std::string group = GroupInOneLine(status, input.records_per_second, room);
    if (!group.empty()) lines.push_back(CutText("  " + group, columns));
    for (const DatasetStatus& dataset : status.datasets) {
      if (dataset.epochs.empty()) continue;
      lines.push_back(EpochLine(dataset, columns));
      std::string trends = TrendLine(status.metric_trends, dataset.name, "    ", columns);
      if (!trends.empty()) lines.push_back(std::move(trends));
    }
    for (const MetricTrend& trend : status.metric_trends) {
      if (!trend.remark.empty()) lines.push_back(CutText("  " + trend.remark, columns));
    }
  }
  std::vector<LineField> nodes = NodeFields(input);
  nodes[0].text.insert(0, "  ");
  lines.push_back(FitLine(std::move(nodes), columns));
  if (!input.last_event.empty()) {
    lines.push_back(CutText("  last: " + input.last_event, columns));
  }
  return lines;
}

std::string ProgressLine(const ProgressInput& input) {
  if (!input.status.has_value()) return StartingText(input);
  std::string line =
      fmt::format("[{}] {}", DurationText(input.elapsed), ToString(input.status->state));
  for (const std::string& trouble : TroublesOf(*input.status)) line += "; " + trouble;
  const std::string group = GroupInOneLine(*input.status, input.records_per_second, 0);
  if (!group.empty()) line += "; " + group;
  for (const DatasetStatus& dataset : input.status->datasets) {
    if (dataset.epochs.empty()) continue;
    const size_t current = CurrentEpoch(dataset);
    const EpochStatus& epoch = dataset.epochs[current];
    line += fmt::format("; {} epoch {}/{} ", dataset.name, epoch.epoch + 1, dataset.epochs_total);
    line += IsEndless(dataset)
                ? EndlessText(epoch)
                : fmt::format("{:.1f} % ({} of {})",
                              Percent(epoch.records_done, epoch.records_expected),
                              CountText(epoch.records_done), CountText(epoch.records_expected));
    if (epoch.shards.failed > 0) line += ", " + CountText(epoch.shards.failed, "FAILED shard");
  }
  for (const DatasetStatus& dataset : input.status->datasets) {
    line += TrendLine(input.status->metric_trends, dataset.name,
                      fmt::format("; {} in ", dataset.name), 0);
  }
  for (const MetricTrend& trend : input.status->metric_trends) {
    if (!trend.remark.empty()) line += "; " + trend.remark;
  }
  line += fmt::format("; {}, {}; {}", RateText(input.records_per_second),
                      RemainingText(RemainingSeconds(input)), FitLine(NodeFields(input), 0));
  return line;
}

ProgressDisplay::Mode ProgressDisplay::ModeOf(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool plain = (no_color != nullptr && *no_color != '\0') ||
                     (terminal != nullptr && std::string_view(terminal) == "dumb");
  return ::isatty(fd) == 1 && !plain ? Mode::kBlock : Mode::kLines;
}

void ProgressDisplay::Draw(const ProgressInput& input, TimePoint now) {
  if (mode_ == Mode::kOff) return;
  const std::chrono::milliseconds interval = mode_ == Mode::kBlock ? kBlockInterval : kLineInterval;
  if (drawn_at_.has_value() && now - *drawn_at_ < interval) return;
  drawn_at_ = now;
  if (mode_ == Mode::kLines) {
    Write(ProgressLine(input) + "\n");
    return;
  }
  block_ = ProgressBlock(input, ColumnsOf(fd_).value_or(79));
  Clear();
  std::string text;
  for (const std::string& line : block_) text += line + "\n";
  lines_drawn_ = block_.size();
  Write(text);
}

void ProgressDisplay::Print(const std::string& line) {
  if (mode_ != Mode::kOff) Answer(line);
}

void ProgressDisplay::Answer(const std::string& line) {
  Clear();
  std::string text = line + "\n";
  if (mode_ == Mode::kBlock) {
    for (const std::string& drawn : block_) text += drawn + "\n";
    lines_drawn_ = block_.size();
  }
  Write(text);
}

void ProgressDisplay::Clear() {
  if (lines_drawn_ == 0) return;
  // Moves up, and then erases to the end of the screen.
  Write(fmt::format("\x1b[{}A\r\x1b[J", lines_drawn_));
  lines_drawn_ = 0;
}

void ProgressDisplay::Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    // A stopped terminal or a pager must not block supervision, so text that cannot be written is
    // dropped.
    pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0) return;
    const size_t size = std::min<size_t>(text.size() - done, PIPE_BUF);
    const ssize_t written = ::write(fd_, text.data() + done, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the reader is gone
    done += static_cast<size_t>(written);
  }
}

}  // namespace muster
