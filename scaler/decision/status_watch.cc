#include "scaler/decision/status_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "host/messages.h"
#include "proto/messages/node_state.h"
#include "scaler/decision/event_drafts.h"

namespace muster::scaler {
namespace {

constexpr size_t kMetricsMax = 8;

bool IsRunsOwn(const std::string& node) {
  return node == ToString(NodeRole::kMaster) || node == ToString(NodeRole::kScaler);
}

bool HasEnded(const EpochStatus& epoch) {
  return epoch.shards.total > 0 &&
         epoch.shards.committed + epoch.shards.failed == epoch.shards.total;
}

/// The newest epoch, from 1, up to which all epochs have ended. Epochs that the status leaves out
/// have ended.
uint32_t EndedUpTo(const DatasetStatus& dataset) {
  uint32_t ended = dataset.epochs.empty() ? 0 : dataset.epochs.front().epoch;
  for (const EpochStatus& epoch : dataset.epochs) {
    if (!HasEnded(epoch)) break;
    ended = epoch.epoch + 1;
  }
  return ended;
}

/// "epoch 2 of train is committed", or how many shards of it are not.
std::string EpochText(const DatasetStatus& dataset, uint32_t first, uint32_t last) {
  ShardCounts shards;
  for (const EpochStatus& epoch : dataset.epochs) {
    if (epoch.epoch + 1 < first || epoch.epoch + 1 > last) continue;
    shards.total += epoch.shards.total;
    shards.failed += epoch.shards.failed;
  }
  const bool one = first == last;
  const std::string which =
      one ? fmt::format("epoch {} of {} is", last, dataset.name)
          : fmt::format("epochs {} to {} of {} are", first, last, dataset.name);
  if (shards.failed == 0) return which + " committed";
  return fmt::format("{} over, but not committed: {} of {} shards FAILED", which,
                     CountText(shards.failed), CountText(shards.total));
}

rest::Event EpochEvent(const DatasetStatus& dataset, uint32_t first, uint32_t last) {
  const auto epoch = std::ranges::find(dataset.epochs, last - 1, &EpochStatus::epoch);
  rest::Event event{.kind = "note", .target = dataset.name};
  event.because = EpochText(dataset, first, last);
  event.evidence = {{kEpochFigure, static_cast<double>(last), "", 0}};
  if (epoch == dataset.epochs.end()) return event;
  event.evidence.push_back(
      {"records committed", static_cast<double>(epoch->records_committed), "records", 0});
  for (const auto& [name, value] : epoch->metrics) {
    if (event.evidence.size() == kMetricsMax) break;
    event.evidence.push_back({name, value, "", 0});
  }
  return event;
}

}  // namespace

void StatusWatch::Adopt(const std::vector<rest::Event>& events, WallTime run_began) {
  for (const rest::Event& event : events) {
    if (event.wall_us < static_cast<uint64_t>(run_began.count())) continue;
    const std::optional<double> start = FigureOf(event, kStartFigure);
    if (event.kind == "exit" && IsRunsOwn(event.target) && start.has_value()) {
      uint64_t& told = ends_[event.target];
      told = std::max(told, static_cast<uint64_t>(*start));
    }
    const std::optional<double> epoch = FigureOf(event, kEpochFigure);
    if (event.kind == "note" && epoch.has_value()) {
      Epochs& told = epochs_[event.target];
      told.ended = std::max(told.ended, static_cast<uint32_t>(*epoch));
    }
  }
}

void StatusWatch::OnStatus(const JobStatus& status, TimePoint now) {
  over_ = IsTerminal(status.state);
  if (std::exchange(silent_, false)) {
    const auto silence = std::chrono::duration_cast<std::chrono::seconds>(now - *answered_at_);
    sink_(rest::Event{
        .kind = "note",
        .target = std::string(ToString(NodeRole::kMaster)),
        .because = fmt::format("the master answers again, after {} s", silence.count())});
  }
  answered_at_ = now;
  for (const NodeStatus& node : status.nodes) {
    if (IsRunsOwn(node.name)) TellEnd(node);
  }
  for (const DatasetStatus& dataset : status.datasets) {
    if (!dataset.stream.has_value()) TellEpochs(dataset, over_, now);
  }
}

void StatusWatch::OnTime(TimePoint now) {
  if (over_ || silent_ || !answered_at_.has_value()) return;
  if (now - *answered_at_ < options_.silent_after) return;
  silent_ = true;
  sink_(rest::Event{
      .kind = "note",
      .target = std::string(ToString(NodeRole::kMaster)),
      .because = "the master does not answer; workers go on with the shards that they hold"});
}

void StatusWatch::TellEnd(const NodeStatus& node) {
  uint64_t& told = ends_[node.name];
  if (node.start <= told + 1) return;
  const uint64_t ends = node.start - 1 - told;
  told = node.start - 1;
  const std::string how = node.last_exit.empty() ? "" : fmt::format(" ({})", node.last_exit);
  const std::string times = ends == 1 ? "" : fmt::format(" {} times", ends);
  rest::Event event{.kind = "exit",
                    .target = node.name,
                    .because = fmt::format("the {} ended{}{}; muster run started it again",
                                           node.role, times, how)};
  event.evidence = {{kStartFigure, static_cast<double>(told), "", 0}};
  sink_(std::move(event));
}

void StatusWatch::TellEpochs(const DatasetStatus& dataset, bool over, TimePoint now) {
  const uint32_t ended = EndedUpTo(dataset);
  const auto [place, is_new] = epochs_.try_emplace(dataset.name, Epochs{.ended = ended});
  Epochs& told = place->second;
  // An epoch that ended before the first answer ended in an earlier run.
  if (is_new || ended <= told.ended) return;
  const bool early = told.told_at.has_value() && now - *told.told_at < options_.epochs_apart;
  if (early && !over) return;
  const uint32_t first = std::exchange(told.ended, ended) + 1;
  told.told_at = now;
  sink_(EpochEvent(dataset, first, ended));
}

}  // namespace muster::scaler
