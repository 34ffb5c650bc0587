#pragma once

#include <algorithm>
#include <chrono>

namespace muster::net {

/// For how long it pays to look again and again for what comes next, before sleeping: as long as
/// waits have been short, and not at all when they are long. To sleep and to be woken costs more
/// than a short wait, and a long wait on a processor takes it from somebody else. The rule is that
/// of KVM's halt polling (Documentation/virt/kvm/halt-polling.rst of Linux). Who spins yields
/// between two looks. Pure. Not thread-safe.
class SpinBudget {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `max`: the most; 0: never.
  explicit SpinBudget(Duration max) : max_(max), budget_(max) {}

  Duration budget() const { return budget_; }
  /// A wait is over, and has taken so long, asleep or not.
  void Waited(Duration wait) {
    if (wait <= budget_) return;
    // One that fits into the most would have paid.
    budget_ = wait > max_ ? Duration(budget_ / 2 < kMin ? Duration(0) : budget_ / 2)
                          : std::min(max_, std::max(kMin, 2 * budget_));
  }

 private:
  static constexpr Duration kMin = std::chrono::microseconds(5);

  Duration max_;
  Duration budget_;
};

}  // namespace muster::net
