#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// How many workers the cluster has room for, from views alone: those that wait for a place are
/// seen, and what the policy no-room did about them. Every policy that needs it steps its own
/// through the same views, so all know the same. A value.
class PlaceWatch {
 public:
  static constexpr const char* kPolicy = "no-room";
  explicit PlaceWatch(const NoRoomOptions& options) : options_(options) {}

  /// Another number of workers, because of the room in the cluster.
  struct Change {
    uint32_t before = 0;
    uint32_t after = 0;
  };
  /// Once for each view.
  void Step(const JobView& view);

  /// What is due now: fewer, because some have waited too long, or as many as before, because it is
  /// time to try again.
  const std::optional<Change>& due() const { return due_; }
  /// Workers that wait for room now; how many of them have waited too long; the one that waits
  /// longest.
  uint32_t waiting() const { return waiting_; }
  uint32_t overdue() const { return overdue_; }
  const NodeView* longest() const { return longest_; }
  /// Workers that were given up for want of room and are not tried again yet.
  uint32_t missing() const { return missing_; }
  /// How long fewer workers are wanted after the next time that some are given up.
  std::chrono::seconds retry() const;

 private:
  void NoteTaken(const JobView& view);
  void Look(const JobView& view);

  NoRoomOptions options_;
  std::optional<Change> due_;
  uint32_t wanted_ = 0;  // those that leave are not among them
  uint32_t waiting_ = 0;
  uint32_t overdue_ = 0;
  const NodeView* longest_ = nullptr;  // of the newest view
  uint32_t missing_ = 0;
  uint32_t tries_ = 0;  // in a row that ended with fewer
  TimePoint retry_at_;
  std::optional<TimePoint> placed_since_;  // everything that is wanted has had a place
};

/// True if the node has no place because the cluster lacks room for it, or its quota does.
bool WaitsForRoom(const NodeView& node);

/// What is done for nodes for which a cluster has no room. A node that asks for more than it had
/// when it last ran is started again as it was then: a limit that is too greedy must not park a
/// server for ever. Of workers, fewer are wanted (not below the job file's minimum); later they are
/// tried again, with a delay that doubles. A server that never had a place is left waiting: without
/// it, the job cannot continue anyway, and its event and `muster status` say so.
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
  /// By node: the last time that less was proposed. It is repeated, but not every second: as a
  /// repair, it has no cooldown.
  std::map<std::string, TimePoint> asked_at_;
};

}  // namespace muster::scaler
