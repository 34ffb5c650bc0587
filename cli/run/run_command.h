#pragma once

#include <sys/types.h>

#include <string>

#include "cli/show/output.h"
#include "cli/state/cluster_target.h"

namespace muster {

struct RunOptions {
  std::string job_file;
  /// If it is not empty, it is the text of the job file, and `job_file` is a name for messages.
  std::string job_text;
  /// Where the relative paths of a text begin; "" = in the current folder.
  std::string job_folder;
  bool dry_run = false;
  bool retry_failed = false;
  bool progress = true;
  OutputFormat output = OutputFormat::kText;
  /// This process runs in the job's own pod on Kubernetes. Its environment says what is different
  /// (pod_environment.h, job/in_cluster.h).
  bool in_cluster = false;
  /// The file from which Kubernetes reads the outcome; "" = none.
  std::string termination_log;
  /// The process that started this one: the run ends at once when that process has ended. 0: the
  /// run does not ask.
  pid_t end_with = 0;
  /// For tests: the id of the run; "" = a new one. If the last run has the same id, it continues.
  std::string run_id;
  /// For tests: passed to the master.
  std::string planted_bug;
  /// For tests: another program as master and server.
  std::string node_program;
  /// If it names a cluster, the job runs there. These are the cluster, the job's image, and whether
  /// this process only starts the job.
  ClusterTarget cluster = {};
  std::string image;
  bool detach = false;
};

/// `muster run`: checks everything that can be checked before, starts and supervises the nodes,
/// shows progress on stderr, writes `<state>/summary.json` and prints the summary to stdout.
/// Returns the exit code. In the cluster, three things are different: it prints its lines to
/// stdout, SIGTERM ends it while workers and servers live on, and an error that may pass has the
/// code kExitUnreachable. Requires: called on the main thread before other threads exist, because
/// it blocks signals.
int RunCommand(const RunOptions& options);

/// From now on, SIGINT, SIGTERM and SIGHUP are held until BlockSignals() reads them, in this thread
/// and all later ones. `muster run` calls it first, so that no Ctrl-C comes too early. While
/// RunCommand reads the job file and the folders, the signals end the process at once.
void HoldSignals();

/// Returns a signalfd for SIGINT, SIGTERM and SIGHUP. It blocks them in this thread and all later
/// ones, and ignores SIGPIPE.
int BlockSignals();

}  // namespace muster
