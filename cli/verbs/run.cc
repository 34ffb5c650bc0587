#include "cli/cluster/cluster_run.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddRun(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  const auto options = std::make_shared<RunOptions>();
  options->termination_log = "/dev/termination-log";
  CLI::App* verb =
      app->add_subcommand("run", "Run a job on this machine or on a cluster, or resume it");
  verb->add_option("job", options->job_file, "Job file (docs/job-file.md)")->required();
  verb->add_flag("--dry-run", options->dry_run,
                 "Check everything and print the plan, but start nothing");
  verb->add_flag("--retry-failed", options->retry_failed, "Try FAILED shards again");
  verb->add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "Show no progress on stderr");
  AddOutput(verb, &options->output);
  AddClusterPlace(verb, &options->cluster);
  verb->add_option("--image", options->image, "With --on: the image of every pod")->needs("--on");
  verb->add_flag("--detach,--no-follow", options->detach,
                 "With --on: only start the job, and do not follow it")
      ->needs("--on");
  AddPlantedBug(verb, &options->planted_bug);
  verb->add_option("--node-program", options->node_program)->group("");
  verb->add_flag("--in-cluster", options->in_cluster)->group("");
  verb->add_option("--termination-log", options->termination_log)->group("");
  verb->add_option("--run-id", options->run_id)->group("");
  verb->footer(
      "Examples:\n"
      "  muster run job.yaml                 # the same command resumes the job\n"
      "  muster run job.yaml --dry-run\n"
      "  muster run job.yaml --on kubernetes --image registry/trainer:1\n"
      "  muster run job.yaml --output json --no-progress > summary.json\n"
      "Ctrl-C drains the job; a second Ctrl-C stops it at once. On a cluster, it leaves the job "
      "running.\n"
      "Exit codes: 0 succeeded, 1 failed, 2 bad arguments, job file or data, 3 drained or "
      "stopped,\n"
      "4 cancelled, 7 a server could not read its snapshots, 8 another master took over the job.");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      return options->cluster.is_set() ? cluster::RunOnCluster(*options) : command(*options);
    };
  });
}

}  // namespace muster
