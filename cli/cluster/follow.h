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
  /// OptionsFor the job.
  std::string asks;
  ProgressDisplay::Mode progress = ProgressDisplay::Mode::kOff;
  OutputFormat output = OutputFormat::kText;
  /// Outlives the Follower; the JobLink tells it of looks. Null: nothing is put back.
  ObjectKeeper* keeper = nullptr;
  /// Readable when SIGINT, SIGTERM or SIGHUP came (a signalfd).
  int signal_fd = -1;
};

/// Shows a job on Kubernetes as `muster run` shows one of this machine, until it ends or a signal
/// comes; the job goes on then. An API server that is away is only said. Belongs to one thread.
class Follower {
 public:
  /// All must outlive this.
  Follower(Cluster* cluster, JobLink* link, FollowOptions options);

  /// The exit code: that of the run, or kExitDrained if it was left.
  int Run();

 private:
  void Look();
  void ShowDashboard();
  void ShowDecisions();
  /// True if a signal came.
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
