#include "scaler/policy/no_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::scaler {
namespace {

double SecondsSince(TimePoint since, const JobView& view) {
  return std::chrono::duration<double>(view.now - since).count();
}

/// True if the node asks for more of any resource than it had when it last had a place. No limit
/// counts as more than any limit.
bool AsksForMore(const NodeView& node) {
  if (!node.placed_limits.has_value()) return false;
  const Resources& had = *node.placed_limits;
  const auto more = [](auto now, auto before) { return before > 0 && (now == 0 || now > before); };
  return more(node.limits.memory_bytes, had.memory_bytes) || more(node.limits.cpus, had.cpus);
}

/// A draining job still needs its servers, but no more workers.
bool NeedsNoWorkers(const JobView& view) {
  return view.activity == Activity::kDraining || view.activity == Activity::kOver;
}

}  // namespace

bool WaitsForRoom(const NodeView& node) {
  return node.state == NodeState::kWaiting &&
         (node.wait == NodeWait::kUnschedulable || node.wait == NodeWait::kQuota);
}

void PlaceWatch::Step(const JobView& view) {
  NoteTaken(view);
  Look(view);
  due_.reset();
  // If the number of workers is fixed, the job waits for all of them.
  if (view.workers_min >= view.workers_max || NeedsNoWorkers(view)) return;
  const uint32_t least = std::max(view.workers_min, 1u);
  if (overdue_ > 0 && wanted_ > least) {
    due_ = Change{.before = wanted_, .after = std::max(least, wanted_ - overdue_)};
  } else if (missing_ > 0 && waiting_ == 0 && view.now >= retry_at_ && wanted_ < view.workers_max) {
    due_ = Change{.before = wanted_, .after = std::min(view.workers_max, wanted_ + missing_)};
  }
}

std::chrono::seconds PlaceWatch::retry() const {
  return std::min(options_.retry_max, options_.retry * (int64_t{1} << std::min(tries_, 20u)));
}

void PlaceWatch::NoteTaken(const JobView& view) {
  for (const ActionTaken& taken : view.taken) {
    if (taken.action != Action::kScale) continue;
    const bool fewer = taken.policy == kPolicy && taken.workers_after < taken.workers_before;
    missing_ = fewer ? missing_ + (taken.workers_before - taken.workers_after) : 0;
    if (!fewer) continue;
    retry_at_ = taken.at + retry();
    ++tries_;
  }
}

void PlaceWatch::Look(const JobView& view) {
  wanted_ = waiting_ = overdue_ = 0;
  longest_ = nullptr;
  bool all_run = true;
  for (const NodeView& node : view.nodes) {
    if (node.role != NodeRole::kWorker || node.state == NodeState::kDraining) continue;
    ++wanted_;
    all_run &= node.state == NodeState::kRunning;
    if (!WaitsForRoom(node)) continue;
    ++waiting_;
    if (longest_ == nullptr || node.waits_since < longest_->waits_since) longest_ = &node;
    // A node that asks for more than before is helped by AskForLess(), so it does not count here.
    const bool too_long = view.now - node.waits_since >= options_.hold && !AsksForMore(node);
    overdue_ += too_long ? 1 : 0;
  }
  if (!all_run || missing_ > 0) {
    placed_since_.reset();
  } else if (!placed_since_.has_value()) {
    placed_since_ = view.now;
  } else if (view.now - *placed_since_ >= options_.hold) {
    tries_ = 0;
  }
}

std::vector<Proposal> NoRoomPolicy::Step(const JobView& view) {
  places_.Step(view);
  std::vector<Proposal> proposals;
  if (view.activity == Activity::kOver) return proposals;
  for (const NodeView& node : view.nodes) {
    std::optional<Proposal> less = AskForLess(view, node);
    if (less.has_value()) proposals.push_back(*std::move(less));
  }
  if (places_.due().has_value()) proposals.push_back(ChangeWorkers(view, *places_.due()));
  return proposals;
}

std::optional<Proposal> NoRoomPolicy::AskForLess(const JobView& view, const NodeView& node) {
  if (!WaitsForRoom(node) || !AsksForMore(node)) return std::nullopt;
  if (view.now - node.waits_since < options_.request_hold) return std::nullopt;
  const auto asked = asked_at_.find(node.name);
  const bool lately = asked != asked_at_.end() && view.now - asked->second < options_.request_hold;
  if (lately && asked->second >= node.waits_since) return std::nullopt;
  asked_at_[node.name] = view.now;
  const double waited = SecondsSince(node.waits_since, view);
  return Proposal{
      .policy = name(),
      .action = Action::kRestart,
      .kind = Proposal::Kind::kRepair,
      .target = node.name,
      .before = node.limits,
      .after = *node.placed_limits,
      .evidence = {{"time without a place", waited, "s"}},
      .because = fmt::format(
          "{} has waited for a place with {} for {:.0f} s ({}). It had a place with {}, so it is "
          "tried again with that",
          node.name, ToString(node.limits), waited, WaitText(node.wait, node.wait_reason),
          ToString(*node.placed_limits))};
}

Proposal NoRoomPolicy::ChangeWorkers(const JobView& view, const PlaceWatch::Change& change) const {
  Proposal proposal{.policy = name(),
                    .action = Action::kScale,
                    .target = "workers",
                    .before = change.before,
                    .after = change.after};
  if (change.after > change.before) {
    proposal.because = fmt::format(
        "{} had no place in the cluster before. It is time to try again: {} workers "
        "become {}",
        CountText(change.after - change.before, "worker"), change.before, change.after);
    return proposal;
  }
  const NodeView& longest = *places_.longest();
  const double waited = SecondsSince(longest.waits_since, view);
  proposal.evidence = {
      {"workers without a place", static_cast<double>(places_.waiting()), "workers"},
      {"longest time without a place", waited, "s"}};
  proposal.because = fmt::format(
      "{} of {} workers have no place, the longest for {:.0f} s ({}): {} workers become {}; "
      "more are tried in {} s",
      places_.overdue(), change.before, waited, WaitText(longest.wait, longest.wait_reason),
      change.before, change.after, places_.retry().count());
  return proposal;
}

}  // namespace muster::scaler
