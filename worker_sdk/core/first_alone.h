#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/words/types.h"

namespace muster::sdk {

/// Lets the first shard of a restarted process run alone until a shard is completed, but at most
/// for kAloneMax, because loops may wait for each other. A crash is charged to a shard only if that
/// shard was computed alone. Without this rule, a shard that crashes its trainer could do so again
/// and again beside others, and would never be charged. Pure. Not thread-safe.
class FirstAlone {
 public:
  static constexpr std::chrono::seconds kAloneMax{60};

  /// `started_again`: the process follows another of the same worker.
  explicit FirstAlone(bool started_again) : over_(!started_again) {}

  /// Names one thread of the process.
  using ThreadNumber = uint64_t;

  /// True if this thread may take a shard now. The thread that holds the first one may, because it
  /// would wait for itself.
  bool MayTake(ThreadNumber thread, TimePoint now) const {
    return over_ || !first_.has_value() || first_->thread == thread ||
           now - first_->since >= kAloneMax;
  }
  void Took(ThreadNumber thread, LeaseToken token, TimePoint now) {
    if (first_.has_value()) over_ = true;
    if (!over_) first_ = First{thread, token, now};
  }
  /// The loop has left the shard. A shard that was not completed proves nothing.
  enum class How { kCompleted, kGivenUp };
  void Left(LeaseToken token, How how) {
    if (over_ || !first_.has_value() || first_->token != token) return;
    over_ = how == How::kCompleted;
    first_.reset();
  }
  bool over() const { return over_; }

 private:
  struct First {
    ThreadNumber thread;
    LeaseToken token;
    TimePoint since;
  };
  bool over_;
  std::optional<First> first_;
};

}  // namespace muster::sdk
