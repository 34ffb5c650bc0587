#include "verify/fault_plan.h"

#include <algorithm>
#include <utility>

namespace muster::verify {
namespace {

using std::chrono::milliseconds;

/// Most faults come before the job has got over the last one; some wait, so that snapshots are
/// taken and work is committed between them.
constexpr milliseconds kWaitMin{200};
constexpr milliseconds kWaitMax{1'200};
constexpr milliseconds kLongWaitMax{3'000};
constexpr uint64_t kLongWaitOneIn = 4;
/// Between the two kills that lead to one path, and between those of a burst.
constexpr milliseconds kPairWait{20};
constexpr uint64_t kInBurstOneIn = 2;

}  // namespace

std::string_view ToString(Role role) {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kServer:
      return "ps";
    case Role::kMaster:
      return "master";
    case Role::kScaler:
      return "scaler";
  }
  return "?";
}

RarePaths Larger(const RarePaths& a, const RarePaths& b) {
  return {.replayed_shards = std::max(a.replayed_shards, b.replayed_shards),
          .reverified_runs = std::max(a.reverified_runs, b.reverified_runs),
          .parts_skipped = std::max(a.parts_skipped, b.parts_skipped),
          .reasserted_leases = std::max(a.reasserted_leases, b.reasserted_leases)};
}

std::vector<std::string_view> NotTaken(const RarePaths& paths) {
  std::vector<std::string_view> names;
  if (paths.replayed_shards == 0) names.push_back("replayed_shards");
  if (paths.reverified_runs == 0) names.push_back("reverified_runs");
  if (paths.parts_skipped == 0) names.push_back("parts_skipped");
  if (paths.reasserted_leases == 0) names.push_back("reasserted_leases");
  return names;
}

FaultPlan::FaultPlan(const Options& options) : options_(options), rng_(options.seed) {
  const std::vector<Role>& roles = options_.roles;
  for (uint32_t i = 0; i < options.kills; ++i) {
    faults_.push_back({.kind = Fault::Kind::kKill, .role = roles[i % roles.size()]});
  }
  // From the other end, so that few kills and few pauses hit different roles.
  for (uint32_t i = 0; i < options.pauses; ++i) {
    faults_.push_back(
        {.kind = Fault::Kind::kPause, .role = roles[roles.size() - 1 - i % roles.size()]});
  }
  for (size_t i = faults_.size(); i > 1; --i) std::swap(faults_[i - 1], faults_[rng_.Below(i)]);
}

milliseconds FaultPlan::Between(milliseconds low, milliseconds high) {
  return low + milliseconds(rng_.Below(static_cast<uint64_t>((high - low).count()) + 1));
}

milliseconds FaultPlan::Wait() {
  if (rng_.Below(kLongWaitOneIn) == 0) return Between(kWaitMax, kLongWaitMax);
  return Between(kWaitMin, kWaitMax);
}

void FaultPlan::AimAt(const RarePaths& taken) {
  const auto kill = [](Role role, milliseconds wait) {
    return Fault{.kind = Fault::Kind::kKill, .role = role, .wait = wait};
  };
  const milliseconds wait = Wait();
  if (taken.reasserted_leases == 0) {
    aimed_ = {kill(Role::kMaster, wait)};
  } else if (taken.replayed_shards == 0) {
    // A shard is DONE, but its worker can no longer report it.
    aimed_ = {kill(Role::kWorker, wait), kill(Role::kServer, kPairWait)};
  } else if (taken.reverified_runs == 0 || taken.parts_skipped == 0) {
    aimed_ = {kill(Role::kServer, wait)};
  }
}

std::optional<Fault> FaultPlan::NextAimed(const RarePaths& taken) {
  if (aimed_.empty() && 2 * begun_ >= total()) AimAt(taken);
  if (aimed_.empty()) return std::nullopt;
  const Fault fault = aimed_.front();
  aimed_.pop_front();
  return fault;
}

std::optional<Fault> FaultPlan::Next(const RarePaths& taken) {
  if (begun_ == total()) return std::nullopt;
  Fault fault = faults_[begun_];
  fault.wait = Wait();
  if (fault.kind == Fault::Kind::kPause) {
    fault.pause = Between(options_.lease * 12 / 10, options_.lease * 2);
  } else if (options_.aim == Options::Aim::kRarePaths) {
    fault = NextAimed(taken).value_or(fault);
  } else if (begun_ > 0 && rng_.Below(kInBurstOneIn) == 0) {
    fault.wait = kPairWait;
  }
  ++begun_;
  return fault;
}

uint32_t DoublingsFor(double done, double applied) {
  // The last tenth of the job is reserved for the time after the last fault.
  const double ahead = done / 0.9 - applied;
  return ahead <= 0 ? 0 : static_cast<uint32_t>(ahead * 20);
}

}  // namespace muster::verify
