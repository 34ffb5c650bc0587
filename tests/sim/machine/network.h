#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "tests/sim/machine/scheduler.h"
#include "tests/sim/machine/trace.h"

namespace muster::sim {

/// A sender and receiver: a machine's end of a link, whichever process is behind it.
using Endpoint = uint32_t;
inline constexpr Endpoint kMasterEnd = 0, kSupervisorEnd = 1;
constexpr Endpoint ServerEnd(uint32_t server) {
  return 100 + server;
}
constexpr Endpoint WorkerEnd(uint32_t worker) {
  return 200 + worker;
}

/// The faults of messages; chances in 1/1000.
struct NetworkFaults {
  uint64_t lost = 0;
  uint64_t doubled = 0;
  uint64_t late = 0;
  nanoseconds delay_max{milliseconds(2)};
  nanoseconds late_max{milliseconds(3'000)};
};

/// Carries messages: each has a delay of its own, so they overtake each other; some are lost, come
/// twice, or so late that both ends have been restarted since. Every link has its own random
/// stream: what happens on one does not shift the others.
class Network {
 public:
  Network(uint64_t seed, Scheduler* scheduler) : seed_(seed), scheduler_(scheduler) {}

  void SetFaults(const NetworkFaults& faults) { faults_ = faults; }
  /// Nothing passes from `from` to `to` (one way) before `until`.
  void Cut(Endpoint from, Endpoint to, TimePoint until) { LinkOf(from, to).cut_until = until; }
  /// All faults end; what is in progress arrives.
  void Heal();

  /// Sends one message: `arrive` happens at the other end, perhaps never, perhaps twice. Lost ones
  /// are lost in silence: timeouts are the sender's.
  void Send(Endpoint from, Endpoint to, std::function<void()> arrive);

  uint64_t deliveries() const { return deliveries_; }
  uint64_t lost() const { return lost_; }
  uint64_t cut() const { return cut_; }
  uint64_t doubled() const { return doubled_; }
  uint64_t late() const { return late_; }

 private:
  struct Link {
    Rng rng{0};
    TimePoint cut_until{};
  };
  Link& LinkOf(Endpoint from, Endpoint to);
  void Carry(Link* link, std::function<void()> arrive);

  const uint64_t seed_;
  Scheduler* const scheduler_;
  NetworkFaults faults_;
  std::map<std::pair<Endpoint, Endpoint>, Link> links_;
  uint64_t deliveries_ = 0, lost_ = 0, cut_ = 0, doubled_ = 0, late_ = 0;
};

}  // namespace muster::sim
