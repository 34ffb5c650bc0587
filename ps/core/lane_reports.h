#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "ps/core/lane_messages.h"

namespace muster::ps {

/// Keeps the newest reports of a server's lanes, and decides how long an exchange waits for missing
/// ones. Pure: time is an argument. Not thread-safe.
class LaneReports {
 public:
  struct Options {
    /// How long an exchange waits for busy lanes. Then it repeats their newest reports, so that a
    /// large request does not make the server look dead.
    std::chrono::nanoseconds patience{0};
    /// A lane hangs if it was asked this long ago and has not reported yet. Then exchanges wait for
    /// it, so that the master gives its partitions to other servers.
    std::chrono::nanoseconds silence_max{0};
  };
  LaneReports(const Options& options, size_t lanes) : options_(options), lanes_(lanes) {}

  /// Begins an exchange. Returns the lanes to ask for a report: all lanes except those that have
  /// not answered an earlier exchange yet.
  std::vector<size_t> Begin(TimePoint now);
  /// Takes the answer of a lane. Returns true if an exchange was sent without it. Then this report
  /// is news for the next exchange.
  bool Answered(size_t lane, LaneReport report);
  /// Tells if an exchange waits for lanes that hang. A server that was told to end does not wait
  /// for them, because the wait might never end.
  enum class Hanging { kAreAwaited, kAreNot };
  /// How long the exchange still waits, unless the lanes answer earlier. 0: it is sent now with the
  /// reports that are there.
  std::chrono::nanoseconds Wait(TimePoint now, Hanging hanging) const;
  /// Ends the wait, because the exchange is sent now. Returns the newest report of every lane.
  std::vector<LaneReport> Take();

 private:
  struct Lane {
    LaneReport report;
    std::optional<TimePoint> asked_at;  // set while the lane has not answered
    bool late = false;                  // an exchange was sent without its answer
  };
  const Options options_;
  std::vector<Lane> lanes_;
  TimePoint began_{};
};

}  // namespace muster::ps
