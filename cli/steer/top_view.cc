#include "cli/steer/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/show/epochs.h"
#include "cli/show/fit.h"
#include "cli/show/group_text.h"
#include "cli/show/json_output.h"
#include "cli/show/progress.h"
#include "cli/steer/event_text.h"
#include "host/resources.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"

namespace muster::steer {
namespace {

using scaler::rest::Event;
using scaler::rest::Job;
using scaler::rest::Node;

/// A heartbeat that is older than this, or a limit that is used to a higher share, is shown as bad.
constexpr uint64_t kSilentMs = 5'000;
constexpr double kFull = 0.9;
constexpr size_t kEventsLeast = 3;
/// The most datasets that get a line, because a screen has 24 rows.
constexpr size_t kTrendLinesMost = 4;

std::string PercentText(double share) {
  return fmt::format("{:.0f} %", 100 * std::clamp(share, 0.0, 9.99));
}

bool IsSilent(const Node& node) {
  return node.state == NodeState::kRunning && node.heartbeat_age_ms.value_or(0) >= kSilentMs;
}

std::string StateOf(const Node& node) {
  std::string state(ToString(node.state));
  if (node.drain != DrainState::kNone) state += fmt::format(", {}", ToString(node.drain));
  if (IsSilent(node)) {
    state += fmt::format(", silent {} s", *node.heartbeat_age_ms / 1'000);
  }
  return state;
}

double Growth(uint64_t from, uint64_t to) {
  return static_cast<double>(to) - static_cast<double>(from);
}

std::string CpuText(const Node& node) {
  const std::string used = node.usage ? fmt::format("{:.2f}", node.usage->cpus) : "-";
  return node.limits.cpus > 0 ? fmt::format("{} / {:g}", used, node.limits.cpus) : used;
}

double MemoryShare(const Node& node) {
  if (!node.usage || node.limits.memory_bytes == 0) return 0;
  return static_cast<double>(node.usage->memory_bytes) /
         static_cast<double>(node.limits.memory_bytes);
}

std::string MemoryText(const Node& node) {
  const std::string used = node.usage ? BytesText(node.usage->memory_bytes) : "-";
  if (node.limits.memory_bytes == 0) return used;
  return fmt::format("{} / {}{}", used, BytesText(node.limits.memory_bytes),
                     node.usage ? ", " + PercentText(MemoryShare(node)) : "");
}

Tone ToneOf(const Node& node) {
  if (node.state == NodeState::kFinished) return Tone::kOld;
  const bool up = node.state == NodeState::kRunning || node.state == NodeState::kStarting;
  return !up || IsSilent(node) || MemoryShare(node) >= kFull ? Tone::kBad : Tone::kPlain;
}

/// The lines of the table: its heading, and a line for each node with the node's tone.
std::vector<TopLine> TableLines(const std::vector<Column>& columns,
                                const std::vector<std::vector<std::string>>& rows,
                                const std::vector<Tone>& tones, size_t width) {
  std::vector<TopLine> lines;
  for (std::string& line : FitTable(columns, rows, width)) {
    const Tone tone = lines.empty() ? Tone::kHeading : tones[lines.size() - 1];
    lines.push_back({std::move(line), tone});
  }
  return lines;
}

/// Shortens `lines` to at most `rows`. The last line then says how many are missing.
void Shorten(std::vector<TopLine>* lines, size_t rows) {
  if (lines->size() <= rows) return;
  const size_t missing = lines->size() - rows + 1;
  lines->resize(rows);
  if (rows > 0) lines->back() = {fmt::format("... and {} more", missing), Tone::kOld};
}

void Append(const std::vector<TopLine>& lines, std::vector<TopLine>* to) {
  to->insert(to->end(), lines.begin(), lines.end());
}

std::string BarText(double share) {
  constexpr size_t kWidth = 20;
  const size_t full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kWidth);
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(kWidth - full, '.'));
}

}  // namespace

void TopView::Add(TopReading reading) {
  away_.clear();
  readings_.push_back(std::move(reading));
  while (readings_.size() > 2 && readings_.back().at - readings_[1].at >= kWindow) {
    readings_.pop_front();
  }
}

TopView::Earlier TopView::Before(const Node& node) const {
  for (const TopReading& reading : readings_) {
    const auto found = std::ranges::find(reading.nodes, node.name, &Node::name);
    const double seconds = std::chrono::duration<double>(readings_.back().at - reading.at).count();
    const bool same = found != reading.nodes.end() && found->start == node.start &&
                      found->pid == node.pid &&
                      found->worker.has_value() == node.worker.has_value();
    if (same && seconds > 0) return {&*found, seconds};
  }
  return {};
}

TopLine TopView::ProgressLine(size_t columns) const {
  const Job& job = readings_.back().job;
  const Progress& progress = job.progress;
  const double share = progress.records_expected == 0
                           ? 0
                           : static_cast<double>(progress.records_done) /
                                 static_cast<double>(progress.records_expected);
  const std::string left = progress.remaining_seconds
                               ? DurationText(std::chrono::milliseconds(
                                     static_cast<int64_t>(*progress.remaining_seconds * 1'000)))
                               : "?";
  const auto rate = static_cast<uint64_t>(std::max(0.0, progress.records_per_second.value_or(0)));
  return {FitLine({{job.name, 0},
                   {fmt::format("  {}", ToString(job.state)), 1},
                   {"  " + BarText(share), 6},
                   {fmt::format("  {:.1f} %", 100 * share), 2},
                   {fmt::format("  {} records/s", CountText(rate)), 4},
                   {fmt::format("  {} left", left), 3},
                   {fmt::format("  {} / {} records", CountText(progress.records_done),
                                CountText(progress.records_expected)),
                    5},
                   {fmt::format(", {} committed", CountText(progress.records_committed)), 7}},
                  columns),
          Tone::kHeading};
}

/// A line for each dataset with metrics.
std::vector<TopLine> TopView::TrendLines(size_t columns) const {
  const std::vector<MetricTrend>& trends = readings_.back().job.metric_trends;
  std::vector<TopLine> lines;
  for (size_t i = 0; i < trends.size(); ++i) {
    const std::string& dataset = trends[i].dataset;
    if (i > 0 && trends[i - 1].dataset == dataset) continue;
    lines.push_back({TrendLine(trends, dataset, fmt::format("  {} ", dataset), columns)});
  }
  Shorten(&lines, kTrendLinesMost);
  for (const MetricTrend& trend : trends) {
    if (!trend.remark.empty()) lines.push_back({"  " + trend.remark, Tone::kBad});
  }
  return lines;
}

std::vector<TopLine> TopView::JobLines(TimePoint now, WallTime wall, size_t columns) const {
  const TopReading& reading = readings_.back();
  const Job& job = reading.job;
  std::vector<TopLine> lines = {ProgressLine(columns)};
  if (!job.reason.empty()) lines.push_back({CutText("  " + job.reason, columns), Tone::kBad});
  if (!away_.empty()) {
    lines.push_back(
        {fmt::format("  the scaler does not answer, all this is {} s old: {}",
                     std::chrono::duration_cast<std::chrono::seconds>(now - reading.at).count(),
                     away_),
         Tone::kBad});
  } else if (!job.master_reachable) {
    const uint64_t now_us = static_cast<uint64_t>(wall.count());
    const uint64_t age_s = now_us > job.seen_wall_us ? (now_us - job.seen_wall_us) / 1'000'000 : 0;
    lines.push_back({job.seen_wall_us == 0
                         ? "  the master has not answered yet"
                         : fmt::format("  the master does not answer: progress is {} s old", age_s),
                     Tone::kBad});
  }
  std::vector<const NodeStatus*> nodes;
  for (const Node& node : reading.nodes) nodes.push_back(&node);
  for (const std::string& wait : WaitsOf(nodes)) {
    lines.push_back({CutText("  " + wait, columns), Tone::kBad});
  }
  // Two columns are for the indent.
  const size_t room = columns == 0 ? 0 : std::max<size_t>(columns, 3) - 2;
  const std::string group = GroupInOneLine(job, job.progress.records_per_second, room);
  if (!group.empty()) lines.push_back({CutText("  " + group, columns)});
  if (!job.limits_remark.empty()) lines.push_back({"  " + job.limits_remark, Tone::kOld});
  Append(TrendLines(columns), &lines);
  return lines;
}

std::vector<TopLine> TopView::WorkerLines(size_t columns) const {
  const std::vector<Column> heading = {
      {"WORKER", 0}, {"STATE", 0},  {"RECORDS/S", 1}, {"COMPUTING", 3}, {"SHARDS", 6},
      {"PULLS", 6},  {"PUSHES", 6}, {"CPUS", 4},      {"MEMORY", 2},    {"STARTS", 5}};
  std::vector<std::vector<std::string>> rows;
  std::vector<Tone> tones;
  const std::vector<Node>& nodes = readings_.back().nodes;
  const bool any_stays = std::ranges::any_of(nodes, [](const Node& node) {
    return node.role == ToString(NodeRole::kWorker) && node.state != NodeState::kFinished;
  });
  size_t left = 0;
  for (const Node& node : nodes) {
    if (node.role != ToString(NodeRole::kWorker)) continue;
    // Drained workers are left out, unless all are drained, as at the end of the job.
    if (any_stays && node.state == NodeState::kFinished) {
      ++left;
      continue;
    }
    tones.push_back(ToneOf(node));
    std::vector<std::string> shares(4, "-");
    if (const Earlier earlier = Before(node); node.worker && earlier.node != nullptr) {
      const WorkerTimes& now = node.worker->times;
      const WorkerTimes& then = earlier.node->worker->times;
      const double times[] = {
          Growth(then.compute_us, now.compute_us), Growth(then.wait_shard_us, now.wait_shard_us),
          Growth(then.wait_pull_us, now.wait_pull_us), Growth(then.wait_push_us, now.wait_push_us)};
      double all = 0;
      for (const double time : times) all += time;
      for (size_t i = 0; all > 0 && i < 4; ++i) shares[i] = PercentText(times[i] / all);
    }
    rows.push_back({node.name, StateOf(node),
                    node.records_per_second ? fmt::format("{:.0f}", *node.records_per_second) : "-",
                    shares[0], shares[1], shares[2], shares[3], CpuText(node), MemoryText(node),
                    std::to_string(node.start)});
  }
  std::vector<TopLine> lines = TableLines(heading, rows, tones, columns);
  if (left > 0) {
    lines.push_back(
        {fmt::format("{} left: not wanted any more", CountText(left, "worker")), Tone::kOld});
  }
  return lines;
}

std::vector<TopLine> TopView::ServerLines(size_t columns) const {
  const std::vector<Column> heading = {{"SERVER", 0},  {"STATE", 0},    {"PULLS/S", 1},
                                       {"SERVING", 3}, {"PER PULL", 6}, {"PARTITIONS", 6},
                                       {"CPUS", 4},    {"MEMORY", 2},   {"STARTS", 5}};
  std::vector<std::vector<std::string>> rows;
  std::vector<Tone> tones;
  for (const Node& node : readings_.back().nodes) {
    if (node.role != ToString(NodeRole::kServer)) continue;
    tones.push_back(ToneOf(node));
    std::string pulls = "-";
    std::string serving = "-";
    std::string per_pull = "-";
    const Earlier earlier = Before(node);
    if (node.server && earlier.node != nullptr && earlier.node->server) {
      const ServerCounters& now = node.server->counters;
      const ServerCounters& then = earlier.node->server->counters;
      const double count = Growth(then.pulls, now.pulls);
      const double time_us = Growth(then.service_us, now.service_us);
      pulls = fmt::format("{:.0f}", count / earlier.seconds);
      serving = PercentText(time_us / 1e6 / earlier.seconds);
      if (count > 0) per_pull = fmt::format("{:.0f} us", time_us / count);
    }
    rows.push_back({node.name, StateOf(node), pulls, serving, per_pull,
                    node.server ? fmt::format("{} / {}", node.server->partitions_serving,
                                              node.server->partitions)
                                : "-",
                    CpuText(node), MemoryText(node), std::to_string(node.start)});
  }
  return TableLines(heading, rows, tones, columns);
}

std::vector<TopLine> TopView::ControlLines(size_t columns) const {
  const std::vector<Column> heading = {
      {"CONTROL", 0}, {"STATE", 0}, {"CPUS", 1}, {"MEMORY", 2}, {"STARTS", 3}};
  std::vector<std::vector<std::string>> rows;
  std::vector<Tone> tones;
  for (const Node& node : readings_.back().nodes) {
    if (node.role != ToString(NodeRole::kMaster) && node.role != ToString(NodeRole::kScaler)) {
      continue;
    }
    tones.push_back(ToneOf(node));
    rows.push_back(
        {node.name, StateOf(node), CpuText(node), MemoryText(node), std::to_string(node.start)});
  }
  return rows.empty() ? std::vector<TopLine>() : TableLines(heading, rows, tones, columns);
}

std::vector<TopLine> TopView::EventLines() const {
  std::vector<TopLine> lines;
  for (const Event& event : readings_.back().events) {
    // The time of day is enough here.
    const std::string time = WallToText(event.wall_us).substr(11, 8);
    lines.push_back({fmt::format("{}  #{} {} {}  {}", time, event.id, event.kind, event.target,
                                 EventWords(event)),
                     event.kind == "exit" ? Tone::kBad : Tone::kPlain});
  }
  return lines;
}

std::vector<TopLine> TopView::Lines(TimePoint now, WallTime wall, TopSize size) const {
  if (readings_.empty()) return {};
  std::vector<TopLine> lines = JobLines(now, wall, size.columns);
  std::vector<TopLine> workers = WorkerLines(size.columns);
  std::vector<TopLine> servers = ServerLines(size.columns);
  std::vector<TopLine> control = ControlLines(size.columns);
  std::vector<TopLine> events = EventLines();
  if (size.rows > 0) {
    // There are few servers, so they come first. Then come as many workers as leave room for some
    // events, and then master and scaler.
    const size_t fixed = lines.size() + 4;  // blank lines between the parts
    size_t room = size.rows > fixed ? size.rows - fixed : 0;
    const size_t kept = std::min(events.size(), kEventsLeast);
    const auto take = [&room, kept](std::vector<TopLine>* part, size_t least) {
      const size_t reserved = kept + least;
      Shorten(part, room > reserved ? room - reserved : 0);
      room -= std::min(room, part->size());
    };
    take(&servers, std::min<size_t>(workers.size(), 3));
    take(&workers, control.size());
    take(&control, 0);
    if (events.size() > room) {
      events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(room));
    }
  }
  for (const std::vector<TopLine>* part : {&workers, &servers, &control, &events}) {
    if (part->empty()) continue;
    lines.push_back({});
    Append(*part, &lines);
  }
  if (size.rows > 0 && lines.size() > size.rows) lines.resize(size.rows);
  for (TopLine& line : lines) {
    line.text = CutText(line.text, size.columns);
    if (!away_.empty() && line.tone == Tone::kPlain) line.tone = Tone::kOld;
  }
  return lines;
}

}  // namespace muster::steer
