#pragma once

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace muster {

/// The time after a restart of the master in which workers re-assert their leases
/// (docs/protocol.md, section 4). Nothing is granted, and the floor does not change. It ends after
/// its duration, or when every worker that ran before was heard or is dead. A value; not
/// thread-safe.
class GracePeriod {
 public:
  /// `awaited`: the names of the workers that ran when the last master died.
  void Begin(std::set<std::string> awaited, TimePoint end) {
    on_ = true;
    awaited_ = std::move(awaited);
    end_ = end;
  }
  bool on() const { return on_; }
  /// The worker was heard, or is dead.
  void Settle(const std::string& worker) { awaited_.erase(worker); }
  /// Returns true if it is over now but was not before.
  bool Tick(TimePoint now) {
    if (!on_ || (now < end_ && !awaited_.empty())) return false;
    on_ = false;
    awaited_.clear();
    return true;
  }
  /// Time passed in which no worker could be heard.
  void Forgive(std::chrono::nanoseconds gap) { end_ += gap; }

 private:
  bool on_ = false;
  TimePoint end_;
  std::set<std::string> awaited_;
};

}  // namespace muster
