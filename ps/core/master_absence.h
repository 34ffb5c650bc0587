#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace muster::ps {

/// Decides how long a server continues while its master does not answer. Without a limit, a server
/// whose master and supervisor are gone for good would never end. Pure; not thread-safe.
class MasterAbsence {
 public:
  struct Options {
    /// 0 means no limit.
    std::chrono::nanoseconds max{0};
    /// The limit if the master's last answer said that the server may end.
    std::chrono::nanoseconds max_after_end{std::chrono::seconds(60)};
  };
  enum class Verdict : uint8_t {
    kGoOn,
    /// The master had said that there is nothing left to do.
    kOver,
    kTooLong,
  };

  MasterAbsence(const Options& options, TimePoint now) : options_(options), answered_at_(now) {}

  /// `may_end` is ServerExchangeReply::drained.
  void Answered(TimePoint now, bool may_end) {
    answered_at_ = now;
    may_end_ = may_end;
  }
  /// Call this after a call that the master did not answer.
  Verdict Judge(TimePoint now) const {
    const std::chrono::nanoseconds away = now - answered_at_;
    if (may_end_ && away >= options_.max_after_end) return Verdict::kOver;
    return options_.max.count() > 0 && away >= options_.max ? Verdict::kTooLong : Verdict::kGoOn;
  }

 private:
  const Options options_;
  TimePoint answered_at_;
  bool may_end_ = false;
};

}  // namespace muster::ps
