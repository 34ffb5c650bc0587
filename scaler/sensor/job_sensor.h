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

/// What a role's nodes ask for and may have, by the job file.
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
  /// How often servers take snapshots of their partitions, which commit records; 0: not known.
  std::chrono::milliseconds snapshot_interval{0};
  /// What earlier runs needed (scaler/history).
  std::map<NodeRole, RoleHistory> history;
};

/// Joins what the host measures, what the master says and what the keeper knows into the view
/// of the job that policies step through, and into figures over time.
///
/// Readings belong to a life by the node's start number, the master's totals by that and
/// incarnation; figures of two lives are never mixed. A total that the master forgot (it was
/// started again) holds still until it has heard it again.
///
/// Deterministic; a value with one owner; not thread-safe.
class JobSensor {
 public:
  struct Options {
    /// An answer of the master that is older says nothing about now: the activity is kStarting, so
    /// no node is blamed for standing still.
    std::chrono::seconds stale_after{5};
    /// A replay that is not over after so long no longer keeps rates from being compared.
    std::chrono::seconds replay_max{120};
    /// Samples kept of a life, newest first: more than any policy's window.
    size_t samples_max = 600;
    /// What figures of the dashboard are taken over: totals come every half second or so.
    std::chrono::seconds figure_window{3};
    /// What the machine's idle time is taken over.
    std::chrono::seconds machine_window{20};
  };
  explicit JobSensor(JobShape shape) : JobSensor(std::move(shape), Options{}) {}
  JobSensor(JobShape shape, const Options& options);

  /// Once a second: of every node that runs, as far as the host could read it. For one whose
  /// reading is missing, its own figures count (NodeStatus::own_usage), else its last ones.
  void OnReading(std::vector<NodeReading> readings, TimePoint at, WallTime wall);
  /// Once a second: the running total of what no program used of the machine's cores (MachineIdle);
  /// nothing: it cannot be had.
  void OnMachine(std::optional<std::chrono::microseconds> idle, TimePoint at);
  /// An answer of the master; outdated ones are ignored.
  void OnStatus(const JobStatus& status, TimePoint asked_at);
  /// A node ended. `kept`: as its keeper has it, before or after it heard of the exit. Gives what
  /// policies will see of it.
  NodeEnd OnExit(const NodeExited& exit, const KeptNode& kept, TimePoint at);
  void OnEnd(NodeEnd end) { ends_.push_back(std::move(end)); }
  /// Something was carried out, be it by a policy or by a person.
  void OnTaken(ActionTaken taken) { taken_.push_back(std::move(taken)); }

  /// The job as of `now`, which never goes back. Readings since the last call become samples; ends
  /// and actions are in one view only. Valid until the next call.
  const JobView& View(const std::vector<KeptNode>& kept, TimePoint now);

  /// FigureRings::Since.
  rest::Samples Since(const std::string& node, uint64_t after_wall_us, double window_s) const {
    return rings_.Since(node, after_wall_us, window_s);
  }
  /// Of the node's present life; nothing before its first reading.
  std::optional<rest::Usage> UsageOf(const std::string& node) const;
  /// Records trained per second, of one worker; 0: none, or not known. It is the newest value of
  /// the figure over time, so that no two places show two rates.
  double RateOf(const std::string& worker) const;
  /// The same of the whole job.
  double Rate() const;
  /// Of the whole job, over the newest 10 s: for times that should not jump.
  double SteadyRate() const;

 private:
  struct Round {
    TimePoint at;
    WallTime wall{0};
    std::map<std::string, NodeReading> readings;
  };
  /// The node of the last view, or a new one.
  NodeView NodeOf(const KeptNode& kept);
  /// The master's word about this life of the node; nullptr when it has none.
  const MasterNode* SeenOf(const KeptNode& kept) const;
  void HearTotals(const KeptNode& kept, const MasterNode& seen, NodeView* node);
  /// Of the newest reading; without one, of what the process told the master of itself.
  void AddSample(const KeptNode& kept, const MasterNode* seen, NodeView* node);
  void WatchReplay();
  Activity ActivityNow(TimePoint now) const;
  std::optional<double> IdleCpus() const;
  void AddFigures();

  Options options_;
  JobShape shape_;
  std::vector<NodeEnd> ends_;
  std::vector<ActionTaken> taken_;
  std::optional<Round> round_;  // not in a view yet
  struct Idle {
    TimePoint at;
    std::chrono::microseconds total{0};
  };
  std::deque<Idle> idle_;  // of the machine; oldest first
  std::optional<MasterDigest> master_;
  std::map<std::string, NodeLife> lives_;
  bool trained_ = false;  // some worker has, in this sensor's time
  /// The most that was ever done, and since when less is.
  uint64_t done_most_ = 0;
  std::optional<TimePoint> replaying_since_;
  JobView view_;
  FigureRings rings_;
  std::map<std::string, double> rates_;  // the newest figure of each worker
};

}  // namespace muster::scaler
