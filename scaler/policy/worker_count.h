#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaler/policy/policy.h"
#include "scaler/policy/throughput_model.h"

namespace muster::scaler {

/// How many workers a job should have, where its file leaves a choice (workers_min < workers_max):
/// measures the rate at each count it has had, tries one more where only one count is known and the
/// machine has cores to spare, then follows the model: adds while another worker pays, removes what
/// brings nothing or only waits for shards.
class WorkerCountPolicy final : public Policy {
 public:
  struct Options {
    /// After a worker came or went, and after anything but training.
    std::chrono::seconds settle{15};
    /// One measurement of the rate; several snapshots of the servers fall into it.
    std::chrono::seconds window{20};
    /// Of one count before it is believed, and remembered at most (their median counts).
    size_t measurements_min = 2;
    size_t measurements_max = 12;
    /// Another worker pays when it brings so much of what one brings on the average now. DLRover
    /// stops at 0.2; a worker that brings less than a third mostly heats the machine.
    double add_min = 0.3;
    /// The last worker goes when it brings less. Far from add_min: no count is left and entered
    /// again by noise.
    double remove_max = 0.05;
    /// At most so many at once: the model knows what was measured and little beyond.
    uint32_t step_max = 2;
    /// A fit that errs by more is not followed.
    double fit_error_max = 0.15;
    /// Time that the job must still have: a worker needs some to start, and at the end all wait.
    std::chrono::seconds remaining_min{120};
    /// Of its time; a worker that waits for shards so long has none to do.
    double only_waits = 0.8;
    /// Cores to spare, of what a worker uses, to try one more.
    double spare_cpus = 0.7;
  };
  WorkerCountPolicy() : WorkerCountPolicy(Options{}) {}
  explicit WorkerCountPolicy(const Options& options) : options_(options) {}

  std::string name() const override { return "worker-count"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  struct Workers {
    uint32_t wanted = 0;  // in the plan
    uint32_t running = 0;
    uint32_t waiting = 0;  // only for shards
    std::string lives;     // changes when any of them does
    double cpus = 0;       // one uses, on the average
    double spare = 0;      // of the machine's
  };
  Workers Look(const JobView& view) const;
  /// Goes on with the measurement under way; true when one was just completed.
  bool Measure(const JobView& view, const Workers& workers);
  std::map<uint32_t, double> Rates() const;
  std::optional<Proposal> Propose(const JobView& view, const Workers& workers) const;
  Proposal Change(const Workers& workers, uint32_t to, double rate, std::string because) const;

  Options options_;
  std::string lives_;
  std::optional<TimePoint> steady_since_;
  std::optional<TimePoint> window_begin_;
  uint64_t records_begin_ = 0;
  std::map<uint32_t, std::deque<double>> measured_;  // records/s
};

}  // namespace muster::scaler
