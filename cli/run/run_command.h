#pragma once

#include <string>

#include "cli/show/output.h"
#include "cli/state/cluster_target.h"

namespace muster {

struct RunOptions {
  std::string job_file;
  bool dry_run = false;
  bool retry_failed = false;
  bool progress = true;
  OutputFormat output = OutputFormat::kText;
  /// This is the job's own pod on Kubernetes: its environment says what is different
  /// (pod_environment.h, job/in_cluster.h).
  bool in_cluster = false;
  /// Where the outcome goes for Kubernetes; "" = nowhere.
  std::string termination_log;
  /// For tests: the id of the run, which continues if it is that of the last one; "" = a new one.
  std::string run_id;
  /// For tests: passed to the master.
  std::string planted_bug;
  /// For tests: the program that is master and server instead of this one.
  std::string node_program;
  /// With a cluster: the job runs there; its image, and whether this process only starts it.
  ClusterTarget cluster = {};
  std::string image;
  bool detach = false;
};

/// `muster run`: checks everything that can be checked beforehand, starts and supervises the nodes,
/// shows progress on stderr, writes `<state>/summary.json` and prints the summary to stdout.
/// Returns the exit code. In the cluster, it prints lines to stdout, SIGTERM ends it while workers
/// and servers live on, and an error that may pass has code kExitUnreachable. Requires: called on
/// the main thread before other threads exist (it blocks signals).
int RunCommand(const RunOptions& options);

/// From now on SIGINT, SIGTERM and SIGHUP wait for BlockSignals, in this thread and all later ones.
/// `muster run` calls it first, so that no Ctrl-C comes too early. While RunCommand reads the job
/// file and the folders, the signals end the process at once.
void HoldSignals();

/// SIGINT, SIGTERM and SIGHUP by file descriptor (the result, a signalfd), for this thread and all
/// that come after; SIGPIPE is ignored.
int BlockSignals();

}  // namespace muster
