#pragma once

#include <algorithm>
#include <chrono>

namespace muster::net {

/// How long to spin before sleeping: as long as recent waits were short, and not at all if they
/// were long. A sleep and a wake-up cost more than a short wait, but a long spin takes the
/// processor from other threads. The rule is that of KVM's halt polling
/// (Documentation/virt/kvm/halt-polling.rst of Linux). The caller yields between two checks. Pure.
/// Not thread-safe.
class SpinBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `max`: the longest spin; 0: never spin.
  explicit SpinBudget(Duration max) : max_(max), budget_(max) {}

  Duration budget() const { return budget_; }
  /// A wait has ended after `wait`, asleep or not.
  void Waited(Duration wait) {
    if (wait <= budget_) return;
    // A wait that is shorter than the maximum would have been worth a spin.
    budget_ = wait > max_ ? Duration(budget_ / 2 < kMin ? Duration(0) : budget_ / 2)
                          : std::min(max_, std::max(kMin, 2 * budget_));
  }

 private:
  static constexpr Duration kMin = std::chrono::microseconds(5);

  Duration max_;
  Duration budget_;
};

}  // namespace muster::net
