#include <string>

#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddRun(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* verb =
      app->add_subcommand("run", "Run a job on this machine or on a cluster, or resume it");
  verb->add_option("job", options->job_file, "Job file (docs/job-file.md)")->required();
  AddRunOptions(verb, options.get());
  verb->add_option("--node-program", options->node_program)->group("");
  verb->add_flag("--in-cluster", options->in_cluster)->group("");
  verb->add_option("--termination-log", options->termination_log)->group("");
  verb->add_option("--run-id", options->run_id)->group("");
  verb->footer(
      std::string("Examples:\n"
                  "  muster run job.yaml                 # the same command resumes the job\n"
                  "  muster run job.yaml --dry-run\n"
                  "  muster run job.yaml --on kubernetes --image registry/trainer:1\n"
                  "  muster run job.yaml --output json --no-progress > summary.json\n") +
      kRunEnds);
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] { return RunHereOrThere(*options, command); };
  });
}

}  // namespace muster
