#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Finds out how many workers the cluster has room for. It uses views alone: they show which
/// workers wait for a place, and what the policy no-room did about them. Every policy that needs
/// this steps its own PlaceWatch through the same views, so all know the same. A value.
class PlaceWatch {
 public:
  static constexpr const char* kPolicy = "no-room";
  explicit PlaceWatch(const NoRoomOptions& options) : options_(options) {}

  /// Another number of workers is wanted, because of the room in the cluster.
  struct Change {
    uint32_t before = 0;
    uint32_t after = 0;
  };
  /// Call it once for each view.
  void Step(const JobView& view);

  /// The change that is due now. Fewer workers are wanted because some have waited too long, or as
  /// many as before because it is time to try again.
  const std::optional<Change>& due() const { return due_; }
  /// The number of workers that wait for room now, the number of those that have waited too long,
  /// and the worker that has waited longest.
  uint32_t waiting() const { return waiting_; }
  uint32_t overdue() const { return overdue_; }
  const NodeView* longest() const { return longest_; }
  /// The number of workers that were given up because there was no room, and are not tried again
  /// yet.
  uint32_t missing() const { return missing_; }
  /// The next time that workers are given up, fewer are wanted for this long.
  std::chrono::seconds retry() const;

 private:
  void NoteTaken(const JobView& view);
  void Look(const JobView& view);

  NoRoomOptions options_;
  std::optional<Change> due_;
  uint32_t wanted_ = 0;  // without those that leave
  uint32_t waiting_ = 0;
  uint32_t overdue_ = 0;
  const NodeView* longest_ = nullptr;  // of the newest view
  uint32_t missing_ = 0;
  uint32_t tries_ = 0;  // how often in a row a try ended with fewer workers
  TimePoint retry_at_;
  std::optional<TimePoint> placed_since_;  // since when every wanted worker has had a place
};

/// True if the node has no place because the cluster or its quota lacks room.
bool WaitsForRoom(const NodeView& node);

/// Acts for nodes that the cluster has no room for. If a node asks for more than it had when it
/// last ran, it is started again with its former limits, so that a limit that is too high does not
/// keep a server away for ever. If workers have no room, fewer are wanted (not below the job file's
/// minimum). Later they are tried again, with a delay that doubles. A server that never had a place
/// keeps waiting. The job cannot continue without it anyway, and the server's event and `muster
/// status` say so.
class NoRoomPolicy final : public Policy {
 public:
  using Options = NoRoomOptions;
  explicit NoRoomPolicy(const Options& options = {}) : options_(options), places_(options) {}

  std::string name() const override { return PlaceWatch::kPolicy; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  std::optional<Proposal> AskForLess(const JobView& view, const NodeView& node);
  Proposal ChangeWorkers(const JobView& view, const PlaceWatch::Change& change) const;

  Options options_;
  PlaceWatch places_;
  /// By node, the last time that less was proposed. The proposal is repeated, but not every second.
  /// It is a repair, so the arbiter has no cooldown for it.
  std::map<std::string, TimePoint> asked_at_;
};

}  // namespace muster::scaler
