#include "scaler/history/history_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace muster::scaler {
namespace {

constexpr uint64_t kFileBytesMax = 64 << 20;
/// A sensor keeps as many.
constexpr size_t kSamplesMax = 660;
constexpr size_t kSamplesSlack = 60;

void Shift(TimePoint* at, TimePoint::duration by) {
  if (*at != TimePoint()) *at += by;
}

}  // namespace

absl::StatusOr<HistoryReader> HistoryReader::Open(const std::string& folder) {
  std::vector<HistoryFile> files = ListHistory(folder);
  if (files.empty()) {
    return absl::NotFoundError(fmt::format(
        "{} has no history (files history-NUMBER.jsonl): a run writes it into scaler/history of "
        "its state directory",
        folder));
  }
  return HistoryReader(std::move(files));
}

bool HistoryReader::LoadFile() {
  while (!files_.empty()) {
    path_ = files_.front().path;
    files_.pop_front();
    absl::StatusOr<std::string> contents = ReadFile(path_, kFileBytesMax);
    if (!contents.ok()) {
      unread_.emplace_back(Message(contents.status()));
      continue;
    }
    contents_ = *std::move(contents);
    position_ = 0;
    line_ = 0;
    return true;
  }
  return false;
}

JobView* HistoryReader::Next() {
  while (true) {
    if (position_ >= contents_.size() && !LoadFile()) return nullptr;
    const size_t end = std::min(contents_.find('\n', position_), contents_.size());
    const std::string_view line = std::string_view(contents_).substr(position_, end - position_);
    position_ = end + 1;
    ++line_;
    if (line.empty()) continue;
    auto parsed = ParseHistoryLine(line);
    if (!parsed.ok()) {
      if (++lines_skipped_ == 1) {
        first_skipped_ = fmt::format("{}:{}: {}", path_, line_, Message(parsed.status()));
      }
      continue;
    }
    if (auto* head = std::get_if<HistoryHead>(&*parsed)) {
      Take(std::move(*head));
      continue;
    }
    Take(std::move(std::get<HistoryMoment>(*parsed)));
    return &view_;
  }
}

void HistoryReader::Take(HistoryHead head) {
  if (head.run_id != run_id_) {
    new_run_ = true;
    run_id_ = head.run_id;
    view_.nodes.clear();
  }
  shape_ = std::move(head.shape);
  view_.budget = shape_.budget;
  view_.machine = shape_.machine;
  view_.workers_min = shape_.workers_min;
  view_.workers_max = shape_.workers_max;
  view_.history = shape_.history;
}

void HistoryReader::Take(HistoryMoment moment) {
  begins_run_ = std::exchange(new_run_, false);
  if (begins_run_) shift_ = TimePoint::duration(0);
  // If the wall clock was set back between two scalers, the view's time goes forward all the same.
  if (!begins_run_ && moment.at + shift_ < view_.now) {
    shift_ = view_.now + std::chrono::seconds(1) - moment.at;
  }
  view_.now = moment.at + shift_;
  view_.activity = moment.activity;
  view_.master_heard = moment.master_heard;
  view_.records_trained = moment.records_trained;
  view_.records_left = moment.records_left;
  view_.backlog_records = moment.backlog_records;
  view_.idle_cpus = moment.idle_cpus;
  view_.ends = std::move(moment.ends);
  view_.taken = std::move(moment.taken);
  for (NodeEnd& end : view_.ends) Shift(&end.at, shift_);
  for (ActionTaken& taken : view_.taken) Shift(&taken.at, shift_);
  std::vector<NodeView> nodes;
  for (HistoryNode& from : moment.nodes) {
    NodeView node{.name = std::move(from.name), .role = from.role, .start = from.start};
    const auto former = std::find_if(view_.nodes.begin(), view_.nodes.end(),
                                     [&](const NodeView& n) { return n.name == node.name; });
    if (former != view_.nodes.end() && former->start == node.start) {
      node.samples = std::move(former->samples);
    }
    node.state = from.state;
    node.started_at = from.started_at;
    Shift(&node.started_at, shift_);
    node.limits = from.limits;
    const RoleShape& role = shape_.roles[node.role];
    node.requested = role.requested;
    node.min = role.min;
    node.max = role.max;
    if (from.sample.has_value()) {
      Shift(&from.sample->at, shift_);
      node.samples.push_back(*from.sample);
    }
    if (node.samples.size() >= kSamplesMax) {
      node.samples.erase(node.samples.begin(), node.samples.begin() + kSamplesSlack);
    }
    nodes.push_back(std::move(node));
  }
  view_.nodes = std::move(nodes);
  for (const HistoryWait& wait : moment.waits) {
    const auto node = std::ranges::find(view_.nodes, wait.node, &NodeView::name);
    if (node == view_.nodes.end()) continue;
    node->wait = wait.wait;
    node->waits_since = wait.since;
    Shift(&node->waits_since, shift_);
    node->placed_limits = wait.placed_limits;
  }
}

}  // namespace muster::scaler
