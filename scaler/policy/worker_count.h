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

/// How many workers a job should have, where its file leaves a choice (workers_min < workers_max):
/// measures the rate at each count it has had, tries one more where only one count is known and the
/// machine has cores to spare, then follows the model: adds while another worker pays, removes what
/// brings nothing or only waits for shards. Where all wait, for data or for servers, none is added.
///
/// A job that learns from a topic and keeps up with it is as fast as the topic, whatever its
/// workers can do: such a rate is no measurement, and workers that are idle most of the time go.
/// While it falls behind, a worker that brings less pays, too.
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
    uint32_t waiting = 0;         // only for shards
    uint32_t served = 0;          // that only wait for servers
    std::string lives;            // changes when any of them does
    double waits = 0;             // for shards, of their time on the average
    std::optional<double> cpus;   // one uses, on the average; nothing: not known
    std::optional<double> spare;  // of the machine's; nothing: not known
  };
  struct Window {
    double rate = 0;                      // records/s
    std::optional<double> backlog_grows;  // records/s; nothing: it learns from no topic
  };
  struct Measurement {
    TimePoint at;
    double rate = 0;
  };
  Workers Look(const JobView& view) const;
  /// Goes on with the measurement in progress; gives it when it was just completed.
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
  /// As many as there may be, but not more than there are where another is of no use, and than the
  /// machine has cores for.
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
  size_t kept_up_ = 0;  // windows in a row
  std::map<uint32_t, std::deque<Measurement>> measured_;
};

}  // namespace muster::scaler
