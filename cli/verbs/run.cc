#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddRun(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app->add_subcommand("run", "Run a job on this machine, or resume it");
  verb->add_option("job", options->job_file, "Job file (docs/job-file.md)")->required();
  verb->add_flag("--dry-run", options->dry_run,
                 "Check everything and print the plan, but start nothing");
  verb->add_flag("--retry-failed", options->retry_failed, "Try FAILED shards again");
  verb->add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "Show no progress on stderr");
  AddOutput(verb, &options->output);
  AddPlantedBug(verb, &options->planted_bug);
  verb->add_option("--node-program", options->node_program)->group("");
  verb->footer(
      "Examples:\n"
      "  muster run job.yaml                 # the same command resumes the job\n"
      "  muster run job.yaml --dry-run\n"
      "  muster run job.yaml --output json --no-progress > summary.json\n"
      "Ctrl-C drains the job; a second Ctrl-C stops it at once.\n"
      "Exit codes: 0 succeeded, 1 failed, 2 bad arguments, job file or data, 3 drained or "
      "stopped,\n"
      "4 cancelled, 7 a server could not read its snapshots.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
