#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/master_link.h"
#include "base/clock.h"
#include "base/random.h"
#include "cli/verify/node_processes.h"
#include "cli/verify/verify_job.h"
#include "host/processes/node_launcher.h"
#include "proto/status/job_status.h"
#include "verify/fault_plan.h"
#include "verify/recovery.h"

namespace muster::verify {

/// Counts by role, in the order of kRoles.
using ByRole = std::array<uint32_t, kRoles.size()>;
uint32_t Sum(const ByRole& counts);

/// What happened to a job during its faults.
struct StormResult {
  ByRole kills{};
  ByRole pauses{};
  std::vector<WorkerKill> worker_kills;
  /// For a server: the time from its kill until the master says that the next process serves every
  /// partition. For a master: until one answers again. For a scaler: until the master has heard of
  /// another one. Measured every 20 ms.
  std::vector<double> server_recoveries_ms;
  std::vector<double> master_recoveries_ms;
  std::vector<double> scaler_recoveries_ms;
  RarePaths paths;  // rare paths that were seen while the job ran
  std::chrono::milliseconds elapsed{0};
  bool interrupted = false;  // by SIGINT, SIGTERM or SIGHUP
  std::string problem;       // why the job did not reach its end; empty if it did
};

/// Runs `muster run` on a job, kills and pauses its processes according to a plan, and waits for
/// the job's end. In any case, no process that it started is left when Run() returns. Belongs to
/// the main thread, on which signals are blocked.
class Storm {
 public:
  struct Options {
    NodePrograms programs;
    FaultPlan::Options plan;
    std::vector<std::string> run_flags;           // flags for `muster run`, besides the job
    int signal_fd = -1;                           // readable if the user wants it to end
    std::function<void(const std::string&)> say;  // prints a line of progress
    /// True if the job has recovered from its faults. It then runs to its end at full speed. Called
    /// every 100 ms when all faults are over, for a minute at most.
    std::function<bool()> recovered = [] { return true; };
  };
  /// `job` and `clock` outlive the storm.
  Storm(Options options, VerifyJob* job, const Clock* clock);
  StormResult Run();

 private:
  enum class Phase : uint8_t { kStarting, kFaults, kPausesEnd, kFinishing, kEnding };
  struct Paused {
    HeldProcess process;
    TimePoint until;
  };
  struct KilledNode {
    NodeProcess node;
    TimePoint at;
  };
  struct KilledMaster {
    uint64_t incarnation = 0;
    TimePoint at;
  };

  void Wait();
  void Act(TimePoint now);
  void Begin(TimePoint now);
  void ApplyFaults(TimePoint now);
  bool Strike(const Fault& fault, TimePoint now);
  void Count(const Fault& fault, const NodeProcess& node, TimePoint now);
  void Resume(TimePoint now);
  bool GotOverFaults(TimePoint now);
  void Connect();
  void ReadSignals();
  void ReadAnswers();
  void Measure(const JobStatus& status, TimePoint asked_at, TimePoint now);
  void HoldBack(const JobStatus& status);
  void SayProgress(TimePoint now);
  uint32_t applied() const;
  void Say(TimePoint now, const std::string& what) const;
  /// Ends the job, and kills what is left of it.
  void GiveUp(std::string problem);
  void HandleExit(const NodeExited& exited);

  const Options options_;
  VerifyJob* const job_;
  const Clock* const clock_;
  const TimePoint started_at_;
  Rng rng_;
  FaultPlan plan_;
  NodeLauncher launcher_;
  std::unique_ptr<MasterLink> link_;
  std::optional<JobStatus> status_;
  Phase phase_ = Phase::kStarting;
  std::optional<Fault> fault_;  // the next one
  TimePoint last_fault_at_;
  TimePoint deadline_;  // of the phase, or of the fault
  TimePoint said_at_;
  TimePoint asked_recovered_at_;
  std::vector<Paused> paused_;
  std::vector<KilledNode> killed_servers_;
  std::vector<KilledMaster> killed_masters_;
  std::vector<KilledNode> killed_scalers_;
  bool ended_ = false;
  StormResult result_;
};

}  // namespace muster::verify
