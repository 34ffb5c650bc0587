#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace muster {

/// Whether the server of one slot, whichever process has it, fails to restore its partitions: it
/// says an error while partitions that it owns are not served. A value; not thread-safe.
class RestoreTrouble {
 public:
  enum class Change : uint8_t { kNone, kBegan, kOver };
  struct Report {
    std::string error;     // of restores; empty: none
    uint32_t waiting = 0;  // partitions that it owns and does not serve
  };
  /// Takes what the server says now. An error that is left out for a moment ends nothing: only a
  /// server that waits for no partition has no trouble.
  Change Take(const Report& report, TimePoint now);

  bool active() const { return heard_at_.has_value(); }
  /// For how long it has got no further. Time in which nothing was heard of the server does not
  /// count, nor time in which it says no error: it has yet to try.
  std::chrono::nanoseconds lasts() const { return lasts_; }
  /// "2 of its partitions cannot be restored: cannot open /...".
  std::string Text() const;

 private:
  Report newest_;
  std::optional<TimePoint> heard_at_;
  std::chrono::nanoseconds lasts_{0};
};

}  // namespace muster
