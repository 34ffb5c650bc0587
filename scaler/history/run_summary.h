#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scaler/model/job_view.h"

/// What a run of a job needed, for the next run of the same job. Pure.
namespace muster::scaler {

/// What the nodes of one role needed.
struct RoleNeeds {
  /// The most memory that any of them used, without page cache. A node that was killed for its
  /// memory counts with its limit, because it needed at least that.
  uint64_t memory_peak_bytes = 0;
  /// Seconds of training by the number of cores in use, in steps of kCpuStep of a core: step ->
  /// seconds.
  std::map<uint32_t, uint64_t> cpu_seconds;

  static constexpr double kCpuStep = 0.05;
  /// Cores in use: the 95th percentile over the seconds of all nodes. 0 if there are no data.
  double CpusP95() const;
};

struct RunSummary {
  std::string run_id;
  uint64_t began_wall_us = 0;
  uint64_t ended_wall_us = 0;
  double training_seconds = 0;
  bool ended_well = false;
  std::map<NodeRole, RoleNeeds> roles;

  /// True if the run is worth learning from: it trained for a minute, or to its end. The policy
  /// initial-resources tells users the same rule.
  bool counts() const { return ended_well || training_seconds >= 60; }
};

/// Sums up a run, view by view. A value with one owner; not thread-safe.
class RunSummarizer {
 public:
  /// `former` is the summary that an earlier scaler of the same run has made.
  explicit RunSummarizer(RunSummary former) : summary_(std::move(former)) {}

  /// Call it after each JobSensor::View. It looks only at the newest sample of each node.
  void Step(const JobView& view, WallTime wall);
  void SetEndedWell() { summary_.ended_well = true; }
  const RunSummary& summary() const { return summary_; }

 private:
  void AddSamples(const JobView& view);
  void AddTime(const JobView& view);

  RunSummary summary_;
  std::map<std::string, TimePoint> sampled_;  // by node
  std::optional<TimePoint> trained_at_;       // the last step, if it was one of training
};

/// For each role, the most that any of the newest runs with counts() needed.
std::map<NodeRole, RoleHistory> LearnFrom(const std::vector<RunSummary>& oldest_first);

}  // namespace muster::scaler
