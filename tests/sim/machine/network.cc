#include "tests/sim/machine/network.h"

namespace muster::sim {

Network::Link& Network::LinkOf(Endpoint from, Endpoint to) {
  const auto [it, added] = links_.try_emplace({from, to});
  if (added) it->second.rng = Rng(HashWords(seed_, from, to));
  return it->second;
}

void Network::Heal() {
  faults_ = NetworkFaults{};
  for (auto& [ends, link] : links_) link.cut_until = TimePoint{};
}

void Network::Send(Endpoint from, Endpoint to, std::function<void()> arrive) {
  Link& link = LinkOf(from, to);
  // Always draws three times per message.
  const bool lost = link.rng.Below(1000) < faults_.lost;
  const bool doubled = link.rng.Below(1000) < faults_.doubled;
  const bool cut = link.cut_until > scheduler_->now();
  if (lost || cut) {
    link.rng.Next();
    ++(cut ? cut_ : lost_);
    return;
  }
  if (doubled) {
    ++doubled_;
    Carry(&link, arrive);
  }
  Carry(&link, std::move(arrive));
}

void Network::Carry(Link* link, std::function<void()> arrive) {
  const uint64_t draw = link->rng.Next();
  nanoseconds delay{50'000 + draw % static_cast<uint64_t>(faults_.delay_max.count())};
  if ((draw >> 40) % 1000 < faults_.late) {
    ++late_;
    delay += nanoseconds(Mix64(draw) % static_cast<uint64_t>(faults_.late_max.count()));
  }
  scheduler_->After(delay, nullptr, [this, arrive = std::move(arrive)] {
    ++deliveries_;
    arrive();
  });
}

}  // namespace muster::sim
