#pragma once

#include <algorithm>
#include <chrono>

namespace muster::net {

/// How long to spin before sleeping. If recent waits were short, it is as long as they were; if
/// they were long, it does not spin at all. A sleep and a wake-up cost more than a short wait, but
/// a long spin takes the processor away from other threads. The rule is that of KVM's halt polling
/// (Documentation/virt/kvm/halt-polling.rst of Linux). The caller yields between two checks. Pure.
/// Not thread-safe.
class SpinBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `max` is the longest spin; with 0, it never spins.
  explicit SpinBudget(Duration max) : max_(max), budget_(max) {}

  Duration budget() const { return budget_; }
  /// A wait has ended after `wait`, with or without a sleep.
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
