#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddScaler(CLI::App* app, Chosen* chosen, Command<ScalerCommandOptions> command) {
  const auto options = std::make_shared<ScalerCommandOptions>();
  CLI::App* verb = app->add_subcommand(
      "scaler", "Run a scaler, which starts and watches workers and servers (muster run does)");
  verb->group("");  // not listed
  verb->add_option("--job", options->job_file, "Job file")->required();
  verb->add_option("--base-directory", options->base_directory,
                   "Where relative paths of the job file begin; its own folder if absent");
  verb->add_option("--master", options->master_address, "127.0.0.1:PORT")->required();
  verb->add_option("--run-id", options->run_id,
                   "Of the run, as the master has it; nodes of the same run are adopted")
      ->required();
  verb->add_option("--job-id", options->job_id,
                   "Of the job: masters of other jobs are not spoken with");
  verb->add_option("--trainer", options->trainer, "The workers' program, absolute")->required();
  verb->add_option("--node-program", options->node_program)->group("");
  verb->add_option("--life-fd", options->life_fd)->group("");
  verb->add_option("--rest-port", options->rest_port,
                   "Port of 127.0.0.1 for REST and the dashboard (a free one)");
  verb->add_option("--held-fd", options->held_fd)->group("");
  verb->add_option("--beat-fd", options->beat_fd)->group("");
  verb->footer(
      "Example:\n  muster scaler --job job.yaml --master 127.0.0.1:20123 --run-id one --trainer "
      "$PWD/trainer\nNodes outlive it when it is killed; SIGTERM ends them, and it.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
