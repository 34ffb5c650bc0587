#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/master_link.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_link.h"
#include "cli/cluster/object_keeper.h"
#include "cli/run/run_view.h"
#include "cli/show/output.h"
#include "job/job_spec.h"

namespace muster::cluster {

struct FollowOptions {
  JobSpec spec;
  /// The result of OptionsFor() for the job.
  std::string asks;
  ProgressDisplay::Mode progress = ProgressDisplay::Mode::kOff;
  OutputFormat output = OutputFormat::kText;
  /// Outlives the Follower. The JobLink tells it of each look. If it is null, nothing is put back.
  ObjectKeeper* keeper = nullptr;
  /// A signalfd for SIGINT, SIGTERM and SIGHUP.
  int signal_fd = -1;
};

/// Shows a job on Kubernetes as `muster run` shows one of this machine. It ends when the job ends,
/// or when a signal comes; then the job continues. If the API server is away, it only says so.
/// Belongs to one thread.
class Follower {
 public:
  /// All pointers must outlive the Follower.
  Follower(Cluster* cluster, JobLink* link, FollowOptions options);

  /// Returns the exit code: that of the run, or kExitDrained if the user left.
  int Run();

 private:
  void Look();
  void ShowDashboard();
  void ShowDecisions();
  /// Waits for a moment. Returns true if a signal came.
  bool Wait();
  int Leave();
  int Finish(const JobLook& look);

  Cluster* const cluster_;
  JobLink* const link_;
  const FollowOptions options_;
  RunView view_;
  JobLook look_;
  bool is_away_ = false;
  std::unique_ptr<MasterLink> master_;
  TimePoint decisions_at_;
};

}  // namespace muster::cluster
