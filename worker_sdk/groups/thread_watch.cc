#include "worker_sdk/groups/thread_watch.h"

#include <algorithm>

namespace muster::sdk {

std::optional<uint64_t> ThreadWatch::Ask(TimePoint now) {
  if (asked_at_.has_value() || now < next_) return std::nullopt;
  asked_at_ = now;
  next_ = now + kPause;
  return ++question_;
}

void ThreadWatch::Answered(uint64_t question) {
  if (question == question_) asked_at_.reset();
}

std::chrono::milliseconds ThreadWatch::SilentFor(TimePoint now) const {
  if (!asked_at_.has_value()) return {};
  using std::chrono::milliseconds;
  return std::max(std::chrono::duration_cast<milliseconds>(now - *asked_at_), milliseconds(0));
}

}  // namespace muster::sdk
