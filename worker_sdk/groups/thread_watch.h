#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster::sdk {

/// Whether another thread of this process gets on: it is asked to answer, one question at a time.
/// Pure. Not thread-safe.
class ThreadWatch {
 public:
  /// Between two questions, so that they cost nothing.
  static constexpr std::chrono::milliseconds kPause{500};

  /// The number of a question that is to be put to the thread now. None: it has not answered the
  /// last one, or that was put less than kPause ago.
  std::optional<uint64_t> Ask(TimePoint now);
  /// The thread has come to the question. Answers to other questions do nothing.
  void Answered(uint64_t question);
  /// The thread answers whatever it was asked.
  void Answered() { asked_at_.reset(); }
  /// Since the question that it has not answered; 0: it has answered.
  std::chrono::milliseconds SilentFor(TimePoint now) const;

 private:
  uint64_t question_ = 0;
  std::optional<TimePoint> asked_at_;
  TimePoint next_{};
};

}  // namespace muster::sdk
