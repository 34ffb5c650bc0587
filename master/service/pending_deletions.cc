#include "master/service/pending_deletions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/backoff.h"

namespace muster {

size_t PendingDeletions::Add(const std::vector<std::string>& names, TimePoint now) {
  size_t forgotten = 0;
  for (const std::string& name : names) {
    const auto hold = holds_.find(name);
    if (size() >= options_.most) {
      ++forgotten;
    } else if (hold != holds_.end() && hold->second > now) {
      held_[name] = hold->second;
    } else {
      waiting_.push_back(name);
    }
  }
  return forgotten;
}

void PendingDeletions::Hold(const std::vector<std::string>& names, TimePoint until) {
  for (const std::string& name : names) {
    TimePoint& hold = holds_[name];
    hold = std::max(hold, until);
  }
}

void PendingDeletions::Hurry() {
  holds_.clear();
  for (const auto& [name, until] : held_) waiting_.push_back(name);
  held_.clear();
  not_before_ = TimePoint();
}

void PendingDeletions::ReleaseDue(TimePoint now) {
  std::erase_if(holds_, [now](const auto& hold) { return hold.second <= now; });
  std::erase_if(held_, [this, now](const auto& held) {
    if (held.second > now) return false;
    waiting_.push_back(held.first);
    return true;
  });
}

std::vector<std::string> PendingDeletions::Next(TimePoint now) {
  if (now < not_before_) return {};
  ReleaseDue(now);
  const auto end =
      waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(options_.batch, waiting_.size()));
  std::vector<std::string> names(std::make_move_iterator(waiting_.begin()),
                                 std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return names;
}

std::optional<TimePoint> PendingDeletions::NextAt() const {
  if (!waiting_.empty()) return not_before_;
  std::optional<TimePoint> first;
  for (const auto& [name, until] : held_) first = std::min(first.value_or(until), until);
  if (first.has_value()) first = std::max(*first, not_before_);
  return first;
}

void PendingDeletions::Away(std::vector<std::string> names, TimePoint now) {
  waiting_.insert(waiting_.begin(), std::make_move_iterator(names.begin()),
                  std::make_move_iterator(names.end()));
  failures_ += failures_ < UINT32_MAX ? 1 : 0;
  not_before_ =
      now + PauseAfter(failures_, {.first = options_.pause_first, .longest = options_.pause_max});
}

}  // namespace muster
