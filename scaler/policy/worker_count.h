#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/no_room.h"
#include "scaler/policy/policy.h"
#include "scaler/policy/throughput_model.h"

namespace muster::scaler {

/// Decides how many workers a job should have, if its file leaves a choice (workers_min <
/// workers_max). It measures the rate at each number of workers that the job has had. If only one
/// number is known and the machine has idle cores, it tries one worker more. Then it follows the
/// model: it adds workers while another one pays, and removes workers that bring nothing or only
/// wait for shards. If all workers wait, for data or for servers, it adds none.
///
/// If a job learns from a topic and keeps up with it, the topic decides its rate, not the workers.
/// Such a rate is no measurement, and workers that are idle most of the time are removed. While the
/// job falls behind, a worker is added even if it brings less than usual.
///
/// While workers have no place in the cluster, NoRoomPolicy alone decides.
class WorkerCountPolicy final : public Policy {
 public:
  using Options = WorkerCountOptions;
  explicit WorkerCountPolicy(const Options& options = {}, const NoRoomOptions& no_room = {})
      : options_(options), places_(no_room) {}

  static constexpr const char* kName = "worker-count";
  std::string name() const override { return kName; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  struct Workers {
    uint32_t wanted = 0;  // in the plan
    uint32_t running = 0;
    uint32_t waiting = 0;         // workers that only wait for shards
    uint32_t served = 0;          // workers that only wait for servers
    std::string lives;            // changes when any life of a worker does
    double waits = 0;             // the average share of their time that they wait for shards
    std::optional<double> cpus;   // that a worker uses on average; none: not known
    std::optional<double> spare;  // idle cores of the machine; none: not known
  };
  struct Window {
    double rate = 0;                      // records/s
    std::optional<double> backlog_grows;  // records/s; none: the job learns from no topic
  };
  struct Measurement {
    TimePoint at;
    double rate = 0;
  };
  Workers Look(const JobView& view) const;
  /// Continues the measurement in progress. Returns it if it has just been completed.
  std::optional<Window> Measure(const JobView& view, const Workers& workers);
  void Remember(const Window& window, const Workers& workers, TimePoint now);
  std::map<uint32_t, double> Rates() const;
  bool KeepsUp(const Window& window, const Workers& workers) const;
  bool FallsBehind(const Window& window) const;
  std::optional<Proposal> Propose(const JobView& view, const Workers& workers,
                                  const Window& window) const;
  std::optional<Proposal> ProposeFewer(const JobView& view, const Workers& workers,
                                       const Window& window) const;
  std::optional<Proposal> FollowModel(const JobView& view, const Workers& workers,
                                      const Window& window) const;
  /// The largest number of workers to aim for. It is the largest number allowed, but not more than
  /// there are if another worker is of no use, and not more than the machine has cores for.
  uint32_t Most(const JobView& view, const Workers& workers) const;
  Proposal Change(const Workers& workers, uint32_t to, const Window& window,
                  std::string because) const;

  Options options_;
  PlaceWatch places_;  // in the cluster
  std::string lives_;
  std::optional<TimePoint> steady_since_;
  std::optional<TimePoint> window_begin_;
  uint64_t records_begin_ = 0;
  std::optional<uint64_t> backlog_begin_;
  size_t kept_up_ = 0;  // in how many windows in a row it kept up with the topic
  std::map<uint32_t, std::deque<Measurement>> measured_;
};

}  // namespace muster::scaler
