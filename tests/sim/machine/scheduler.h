#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace muster::sim {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// One simulated operating-system process. What is scheduled for it dies with it, and waits while
/// it stands still (SIGSTOP, a laptop's lid). Its steady clock has a start and a pace of its own.
struct Process {
  Process(std::string name, uint64_t id, nanoseconds clock_offset, int64_t drift_ppm)
      : name(std::move(name)), id(id), clock_offset(clock_offset), drift_ppm(drift_ppm) {}

  const std::string name;  // "worker-1#4"
  const uint64_t id;       // never used again; the process id, too
  const nanoseconds clock_offset;
  const int64_t drift_ppm;
  bool alive = true;
  TimePoint paused_until{};

  /// What its clock shows at the true time.
  TimePoint Local(TimePoint time) const {
    return TimePoint(clock_offset +
                     Scaled(time.time_since_epoch(), kMillion + drift_ppm, kMillion));
  }
  /// A true time, the first but for some nanoseconds, at which its clock shows `local` or later.
  TimePoint True(TimePoint local) const {
    const nanoseconds since = local.time_since_epoch() - clock_offset;
    return TimePoint(Scaled(since, kMillion, kMillion + drift_ppm) + nanoseconds(2));
  }

 private:
  static constexpr int64_t kMillion = 1'000'000;
  static nanoseconds Scaled(nanoseconds time, int64_t by, int64_t of) {
    return nanoseconds(static_cast<int64_t>(static_cast<__int128>(time.count()) * by / of));
  }
};
using ProcessRef = std::shared_ptr<Process>;

/// Virtual time: the scheduled events in the order of (time, order of scheduling). One thread.
class Scheduler {
 public:
  using Action = std::function<void()>;

  TimePoint now() const { return now_; }
  /// `process` null: an event of the world, which is never dropped. A time in the past counts as
  /// now.
  void At(TimePoint when, ProcessRef process, Action action);
  void After(nanoseconds delay, ProcessRef process, Action action) {
    At(now_ + delay, std::move(process), std::move(action));
  }
  /// Runs the next event; false if there is none.
  bool Step();
  uint64_t steps() const { return steps_; }

 private:
  struct Event {
    TimePoint at;
    uint64_t sequence = 0;
    ProcessRef process;
    Action action;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }
  void Push(Event event);

  std::vector<Event> heap_;
  TimePoint now_{std::chrono::seconds(1)};
  uint64_t sequence_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace muster::sim
