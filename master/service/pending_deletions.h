#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster {

/// Which snapshot files are deleted next, and when. Files that are read by an export are held for a
/// while. If the store is away, nothing is tried for a pause that doubles. It is not spread,
/// because a store has few masters. Pure; not thread-safe.
class PendingDeletions {
 public:
  struct Options {
    /// Files beyond it are forgotten, and stay until the next run finds them: nobody waits for
    /// deletions, and memory is bounded.
    size_t most = 200'000;
    /// Of one request.
    size_t batch = 1'000;
    std::chrono::milliseconds pause_first{1'000};
    std::chrono::milliseconds pause_max{30'000};
  };
  PendingDeletions() : PendingDeletions(Options{}) {}
  explicit PendingDeletions(const Options& options) : options_(options) {}

  /// Returns how many were forgotten because there are too many.
  size_t Add(const std::vector<std::string>& names, TimePoint now);
  /// These files are read until then, so they are not deleted before, if they are to be deleted at
  /// all. A later time replaces an earlier one.
  void Hold(const std::vector<std::string>& names, TimePoint until);
  /// Holds and pauses end.
  void Hurry();
  /// The files to delete now, taken out; empty: none.
  std::vector<std::string> Next(TimePoint now);
  /// When to ask Next again; none: after an Add.
  std::optional<TimePoint> NextAt() const;
  /// Those that Next gave are still there, because the store is away.
  void Away(std::vector<std::string> names, TimePoint now);
  /// The store has deleted, or refused for good, what Next gave.
  void Answered() { failures_ = 0; }
  size_t size() const { return waiting_.size() + held_.size(); }

 private:
  void ReleaseDue(TimePoint now);

  Options options_;
  std::deque<std::string> waiting_;
  std::map<std::string, TimePoint> holds_;  // of files that exist, whether to be deleted or not
  std::map<std::string, TimePoint> held_;   // to be deleted then
  uint32_t failures_ = 0;                   // in a row
  TimePoint not_before_;
};

}  // namespace muster
