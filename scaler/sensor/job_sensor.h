#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "host/messages.h"
#include "proto/status/job_status.h"
#include "scaler/model/job_view.h"
#include "scaler/model/kept_node.h"
#include "scaler/model/model.h"
#include "scaler/sensor/figure_rings.h"
#include "scaler/sensor/master_digest.h"
#include "scaler/sensor/node_life.h"

namespace muster::scaler {

/// What a role's nodes ask for and may have. It comes from the job file.
struct RoleShape {
  Resources requested;
  Resources min;
  Resources max;  // 0 = bounded by budget and machine only
};

/// What does not change while a job runs.
struct JobShape {
  std::map<NodeRole, RoleShape> roles;  // kServer and kWorker
  Resources budget;
  Resources machine;
  uint32_t workers_min = 0;
  uint32_t members_min = 0;  // as in JobView
  uint32_t workers_max = 0;
  /// How often servers take the snapshots that commit records; 0: not known.
  std::chrono::milliseconds snapshot_interval{0};
  /// What earlier runs needed (scaler/history).
  std::map<NodeRole, RoleHistory> history;
};

/// Combines what the host measures, what the master reports and what the keeper knows. The results
/// are the view of the job that policies step through, and figures over time.
///
/// Readings belong to a life by the node's start number. The master's totals belong to a life by
/// start number and incarnation. Figures of two lives are never mixed. If a restarted master has
/// forgotten a total, the total stays the same until the master has heard it again.
///
/// Deterministic; a value with one owner; not thread-safe.
class JobSensor {
 public:
  struct Options {
    /// If the master's newest answer is older than this, it says nothing about now. Then the
    /// activity is kStarting, so no node is blamed for making no progress.
    std::chrono::seconds stale_after{5};
    /// After this time, a replay no longer prevents that rates are compared, even if it is not
    /// over.
    std::chrono::seconds replay_max{120};
    /// How many samples of a life are kept. They cover more than any policy's window.
    size_t samples_max = 600;
    /// The time over which the dashboard's figures are taken. Totals come about every half second.
    std::chrono::seconds figure_window{3};
    /// The time over which the machine's idle cores are measured.
    std::chrono::seconds machine_window{20};
  };
  explicit JobSensor(JobShape shape) : JobSensor(std::move(shape), Options{}) {}
  JobSensor(JobShape shape, const Options& options);

  /// Call it once a second with readings of every running node that the host could read. A node
  /// without a reading gets its own figures (NodeStatus::own_usage), or else its last ones.
  void OnReading(std::vector<NodeReading> readings, TimePoint at, WallTime wall);
  /// Call it once a second with the running total of CPU time that no program used (MachineIdle).
  /// None if it is not available.
  void OnMachine(std::optional<std::chrono::microseconds> idle, TimePoint at);
  /// The master answered. Outdated answers are ignored.
  void OnStatus(const JobStatus& status, TimePoint asked_at);
  /// A node ended. `kept` is the node as its keeper knows it, before or after the keeper heard of
  /// the exit. Returns what policies will see of the end.
  NodeEnd OnExit(const NodeExited& exit, const KeptNode& kept, TimePoint at);
  void OnEnd(NodeEnd end) { ends_.push_back(std::move(end)); }
  /// An action of a policy or a person was carried out.
  void OnTaken(ActionTaken taken) { taken_.push_back(std::move(taken)); }

  /// The job at the time `now`, which must never go back. Readings since the last call become
  /// samples. Each end and each action is in one view only. Valid until the next call.
  const JobView& View(const std::vector<KeptNode>& kept, TimePoint now);

  /// Calls FigureRings::Since.
  rest::Samples Since(const std::string& node, uint64_t after_wall_us, double window_s) const {
    return rings_.Since(node, after_wall_us, window_s);
  }
  /// The usage of the node's present life. None before its first reading.
  std::optional<rest::Usage> UsageOf(const std::string& node) const;
  /// Records trained per second by one worker; 0 if none, or if not known. It is the newest value
  /// of the figure over time, so all places show the same rate.
  double RateOf(const std::string& worker) const;
  /// Records trained per second by the whole job.
  double Rate() const;
  /// The rate of the whole job over the newest 10 s, for estimated times that should not jump.
  double SteadyRate() const;

 private:
  struct Round {
    TimePoint at;
    WallTime wall{0};
    std::map<std::string, NodeReading> readings;
  };
  /// The node from the last view, or a new one.
  NodeView NodeOf(const KeptNode& kept);
  /// What the master reports about this life of the node; nullptr if nothing.
  const MasterNode* SeenOf(const KeptNode& kept) const;
  void HearTotals(const KeptNode& kept, const MasterNode& seen, NodeView* node);
  /// Adds a sample from the newest reading. Without a reading, it uses what the process reported to
  /// the master about itself.
  void AddSample(const KeptNode& kept, const MasterNode* seen, NodeView* node);
  void WatchReplay();
  Activity ActivityNow(TimePoint now) const;
  std::optional<double> IdleCpus() const;
  void AddFigures();

  Options options_;
  JobShape shape_;
  std::vector<NodeEnd> ends_;
  std::vector<ActionTaken> taken_;
  std::optional<Round> round_;  // it is not in a view yet
  struct Idle {
    TimePoint at;
    std::chrono::microseconds total{0};
  };
  std::deque<Idle> idle_;  // of the machine; oldest first
  std::optional<MasterDigest> master_;
  std::map<std::string, NodeLife> lives_;
  bool trained_ = false;  // some worker has trained since this sensor began
  /// The largest number of records done so far, and since when the number is lower.
  uint64_t done_most_ = 0;
  std::optional<TimePoint> replaying_since_;
  JobView view_;
  FigureRings rings_;
  std::map<std::string, double> rates_;  // the newest figure of each worker
};

}  // namespace muster::scaler
