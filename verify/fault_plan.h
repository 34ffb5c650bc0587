#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace muster::verify {

enum class Role : uint8_t { kWorker, kServer, kMaster, kScaler };
inline constexpr std::array kRoles = {Role::kWorker, Role::kServer, Role::kMaster, Role::kScaler};
/// "worker", "ps", "master", "scaler".
std::string_view ToString(Role role);

/// How often the master has counted each path of the protocol that only faults reach.
struct RarePaths {
  uint64_t replayed_shards = 0;
  uint64_t reverified_runs = 0;
  uint64_t parts_skipped = 0;
  uint64_t reasserted_leases = 0;
};
/// The larger count of each, because a master that dies may lose its last counts.
RarePaths Larger(const RarePaths& a, const RarePaths& b);
/// Names of those that were not taken: as in RarePaths.
std::vector<std::string_view> NotTaken(const RarePaths& paths);

struct Fault {
  enum class Kind : uint8_t { kKill, kPause } kind = Kind::kKill;
  Role role = Role::kWorker;
  std::chrono::milliseconds wait{0};   // since the fault before
  std::chrono::milliseconds pause{0};  // of a pause: its length
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// Decides which process is hit and when: kills and pauses go round the roles, in random order.
/// Pure; the same seed and the same paths give the same faults. Not thread-safe.
class FaultPlan {
 public:
  struct Options {
    uint64_t seed = 0;
    uint32_t kills = 0;
    uint32_t pauses = 0;
    /// Pauses are longer.
    std::chrono::milliseconds lease{0};
    /// Who is hit, by turns. A role may be there several times.
    std::vector<Role> roles{kRoles.begin(), kRoles.end()};
    enum class Aim : uint8_t {
      /// When half of the faults are over, kills are aimed at paths not taken yet.
      kRarePaths,
      /// Many a kill comes right after the one before, so that several members of a group die
      /// within the same step, or all of them.
      kBursts,
    } aim = Aim::kRarePaths;
  };
  explicit FaultPlan(const Options& options);

  /// The next fault; none if all are over.
  std::optional<Fault> Next(const RarePaths& taken);
  uint32_t total() const { return options_.kills + options_.pauses; }

 private:
  std::chrono::milliseconds Between(std::chrono::milliseconds low, std::chrono::milliseconds high);
  std::chrono::milliseconds Wait();
  void AimAt(const RarePaths& taken);
  std::optional<Fault> NextAimed(const RarePaths& taken);

  const Options options_;
  Rng rng_;
  std::vector<Fault> faults_;  // kind and role
  std::deque<Fault> aimed_;    // come instead of the next kills
  uint32_t begun_ = 0;
};

/// How often to double the time of a minibatch, so that the job does not end before its faults.
/// `done` and `applied` are the shares of the work and of the faults, 0 to 1, that are over. Pure.
uint32_t DoublingsFor(double done, double applied);

}  // namespace muster::verify
