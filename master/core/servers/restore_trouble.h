#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster {

/// Watches if the server of one slot (any of its processes) fails to restore its partitions: it
/// reports an error while it does not serve partitions that it owns. A value; not thread-safe.
class RestoreTrouble {
 public:
  enum class Change : uint8_t { kNone, kBegan, kOver };
  struct Report {
    std::string error;     // of restores; empty: none
    uint32_t waiting = 0;  // partitions that it owns and does not serve
  };
  /// Takes the server's newest report. A report without an error does not end the trouble; it ends
  /// when the server waits for no partition.
  Change Take(const Report& report, TimePoint now);

  bool active() const { return heard_at_.has_value(); }
  /// How long the server has made no progress. Time without a report does not count, nor time in
  /// which it reports no error, because it has not tried yet.
  std::chrono::nanoseconds lasts() const { return lasts_; }
  /// "2 of its partitions cannot be restored: cannot open /...".
  std::string Text() const;
  /// Why the job ends: `trouble`, for how long it was tried, and what helps. `place`: where the
  /// snapshots are.
  static std::string EndText(std::string_view trouble, std::chrono::milliseconds timeout,
                             std::string_view place);

 private:
  Report newest_;
  std::optional<TimePoint> heard_at_;
  std::chrono::nanoseconds lasts_{0};
};

}  // namespace muster
