#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "ps/core/lane_messages.h"

namespace muster::ps {

/// The newest reports of a server's lanes, and how long an exchange waits for missing ones. Pure:
/// time is an argument. Not thread-safe.
class LaneReports {
 public:
  struct Options {
    /// How long an exchange waits for busy lanes. Then it repeats their newest reports, so that a
    /// large request does not make the server look dead.
    std::chrono::nanoseconds patience{0};
    /// A lane that was asked this long ago and has not reported hangs. Exchanges then wait for it,
    /// so
    /// that the master gives its partitions to others.
    std::chrono::nanoseconds silence_max{0};
  };
  LaneReports(const Options& options, size_t lanes) : options_(options), lanes_(lanes) {}

  /// An exchange begins. Returns the lanes to ask for their report of it: all but those that still
  /// owe an earlier one.
  std::vector<size_t> Begin(TimePoint now);
  /// A lane has answered. Returns true if an exchange was sent without it, so that its report is
  /// news for the next exchange.
  bool Answered(size_t lane, LaneReport report);
  /// False if a lane hangs: a server that was told to end does not wait for it, because the wait
  /// might never end.
  enum class Hanging { kAreAwaited, kAreNot };
  /// How long the exchange waits from now on unless lanes answer; 0: it goes as it is.
  std::chrono::nanoseconds Wait(TimePoint now, Hanging hanging) const;
  /// The exchange goes: the newest report of every lane.
  std::vector<LaneReport> Take();

 private:
  struct Lane {
    LaneReport report;
    std::optional<TimePoint> asked_at;  // and has not answered
    bool late = false;                  // an exchange has gone without it
  };
  const Options options_;
  std::vector<Lane> lanes_;
  TimePoint began_{};
};

}  // namespace muster::ps
