#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace muster::steer {

/// Waits for a limited time, and writes a line about it from time to time. Not thread-safe.
class Patience {
 public:
  /// How often a line is written.
  static constexpr std::chrono::seconds kSayEvery{2};

  struct Options {
    std::optional<std::chrono::seconds> limit;  // absent: no limit
    std::function<void()> pause;                // between two checks
    std::function<void(std::string_view)> say;
  };
  /// `clock` must outlive it.
  Patience(Options options, const Clock* clock)
      : options_(std::move(options)), clock_(clock), began_(clock->Now()), said_(began_) {}
  /// It pauses for 300 ms, and writes lines to stderr.
  static Patience OfAPerson(std::optional<std::chrono::seconds> limit, const Clock* clock);

  /// Writes "waiting for WHAT, 4 s" if a line is due, and pauses. Returns false if the limit is
  /// reached.
  bool Wait(std::string_view what);

 private:
  Options options_;
  const Clock* clock_;
  TimePoint began_;
  TimePoint said_;
};

}  // namespace muster::steer
