#include "tests/sim/machine/scheduler.h"

#include <algorithm>

namespace muster::sim {

void Scheduler::Push(Event event) {
  heap_.push_back(std::move(event));
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

void Scheduler::At(TimePoint when, ProcessRef process, Action action) {
  Push({std::max(when, now_), ++sequence_, std::move(process), std::move(action)});
}

bool Scheduler::Step() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    Event event = std::move(heap_.back());
    heap_.pop_back();
    if (event.process != nullptr) {
      if (!event.process->alive) continue;
      if (event.process->paused_until > event.at) {
        // What came while it stood still is found there, in its order, when it continues.
        event.at = event.process->paused_until;
        event.sequence = ++sequence_;
        Push(std::move(event));
        continue;
      }
    }
    now_ = event.at;
    ++steps_;
    event.action();
    return true;
  }
  return false;
}

}  // namespace muster::sim
