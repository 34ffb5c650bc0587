#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "proto/messages/control.h"
#include "tests/sim/machine/scheduler.h"

namespace muster::sim {

/// What one process receives from the master. An answer is state, and is repeated until the process
/// shows that it knows it. So each piece of it (a map, an ended lease, an acceptance, what to
/// forget) may arrive later than the rest. A piece is on time, or is withheld for up to
/// LateMax(piece).
class LateNews {
 public:
  /// `active` false: everything is on time.
  LateNews(uint64_t seed, bool active) : seed_(seed), active_(active) {}

  /// A worker may name changes of the map that have arrived but take effect only later, so later
  /// changes may overtake them.
  void CountWithheld(WorkerExchangeRequest* request) const {
    if (!changes_ || request->map_base == MapVersion()) return;
    request->map_version = std::max(request->map_version, changes_->version);
    request->map_base = request->map_version;
  }
  /// Removes the late pieces, and adds changes of the map that were late; returns the number of
  /// pieces.
  uint64_t Withhold(WorkerExchangeReply* reply, TimePoint now) {
    if (!active_) return 0;
    uint64_t withheld = std::erase_if(
        reply->lost, [&](LeaseToken token) { return Late(Piece::kLost, token.value(), now); });
    if (reply->map && Late(Piece::kMap, reply->map->version.value(), now)) {
      reply->map.reset();
      ++withheld;
    }
    return withheld + WithholdChanges(reply, now);
  }
  uint64_t Withhold(ServerExchangeReply* reply, TimePoint now) {
    if (!active_) return 0;
    uint64_t withheld = std::erase_if(reply->accepted, [&](const AcceptedSnapshot& one) {
      const uint64_t which = HashWords(one.partition.value(), one.number.value());
      return Late(Piece::kAccepted, which, now);
    });
    // Versions follow each other too fast to be late one by one.
    if (reply->forget && Late(Piece::kForget, reply->master_incarnation.value(), now)) {
      reply->forget.reset();
      ++withheld;
    }
    return withheld;
  }

 private:
  enum class Piece : uint8_t { kMap, kLost, kAccepted, kForget };
  static constexpr nanoseconds LateMax(Piece piece) {
    return milliseconds(piece == Piece::kForget ? 10'000 : 3'000);
  }
  uint64_t WithholdChanges(WorkerExchangeReply* reply, TimePoint now) {
    std::optional<PartitionMapChanges>& said = reply->map_changes;
    if (said && Late(Piece::kMap, said->version.value(), now)) {
      changes_ = std::exchange(said, std::nullopt);
      return 1;
    }
    if (changes_ && !said && !reply->map && !Late(Piece::kMap, changes_->version.value(), now)) {
      said = std::exchange(changes_, std::nullopt);
    }
    return 0;
  }
  bool Late(Piece piece, uint64_t which, TimePoint now) {
    const auto [it, first] = due_.try_emplace({piece, which}, now);
    if (first) {
      const uint64_t draw = HashWords(seed_, static_cast<uint64_t>(piece), which);
      const auto late_max = static_cast<uint64_t>(LateMax(piece).count());
      if (draw % 2 == 0) it->second += nanoseconds((draw >> 1) % late_max);
    }
    return now < it->second;
  }

  const uint64_t seed_;
  const bool active_;
  std::map<std::pair<Piece, uint64_t>, TimePoint> due_;
  /// Withheld, and not given yet.
  std::optional<PartitionMapChanges> changes_;
};

}  // namespace muster::sim
