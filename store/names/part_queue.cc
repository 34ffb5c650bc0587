#include "store/names/part_queue.h"

#include <algorithm>

namespace muster {

PartQueue::PartQueue(RetryLimits limits, uint64_t seed, size_t count)
    : limits_(limits), seed_(seed), count_(count) {}

PartTurn PartQueue::Next(TimePoint now) {
  if (!failure_.ok() || (again_.empty() && next_ == count_)) return {};
  if (now < paused_until_) return {.part = {}, .wait = paused_until_ - now};
  if (!again_.empty()) {
    const size_t part = again_.front();
    again_.pop_front();
    retries_.at(part).Begin(now);
    return {.part = part, .wait = {}};
  }
  const size_t part = next_++;
  retries_.emplace(part, Retries(limits_, now, seed_ + part));
  return {.part = part, .wait = {}};
}

void PartQueue::Done(size_t part) {
  retries_.erase(part);
  ++done_;
}

void PartQueue::Failed(size_t part, const absl::Status& status, std::chrono::nanoseconds asked,
                       TimePoint now, TryTime time) {
  if (!failure_.ok()) return;
  const auto wait =
      absl::IsUnavailable(status) ? retries_.at(part).After(now, asked, time) : std::nullopt;
  if (!wait.has_value()) {
    failure_ = status;
    return;
  }
  again_.push_back(part);
  PauseUntil(now + *wait);
}

void PartQueue::PauseUntil(TimePoint time) {
  paused_until_ = std::max(paused_until_, time);
}

}  // namespace muster
