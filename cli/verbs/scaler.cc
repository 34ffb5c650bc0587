#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddScaler(CLI::App* app, Chosen* chosen, Command<ScalerCommandOptions> command) {
  const auto options = std::make_shared<ScalerCommandOptions>();
  CLI::App* verb = app->add_subcommand(
      "scaler",
      "Run a scaler, which starts and watches workers and servers; `muster run` starts it");
  verb->group("");  // not listed
  verb->add_option("--job", options->job_file, "Job file")->required();
  verb->add_option("--base-directory", options->base_directory,
                   "Folder where relative paths of the job file begin (the job file's folder)");
  verb->add_option("--master", options->master_address, "HOST:PORT")->required();
  verb->add_option("--run-id", options->run_id,
                   "Id of the run, the same as the master's; nodes of this run are taken over")
      ->required();
  verb->add_option("--cluster-namespace", options->cluster_namespace,
                   "Namespace of the job on Kubernetes, in the job's own pod (no cluster)");
  verb->add_option("--job-id", options->job_id, "Id of the job; masters of other jobs are ignored");
  verb->add_option("--tls", options->tls,
                   "Folder with ca.crt, and with this role's certificate and key: connections are "
                   "TLS (plain text)");
  verb->add_option("--trainer", options->trainer, "Absolute path of the workers' program")
      ->required();
  verb->add_option("--node-program", options->node_program)->group("");
  verb->add_option("--life-fd", options->life_fd)->group("");
  verb->add_option("--rest-port", options->rest_port,
                   "Port of REST and the dashboard (a free one)");
  verb->add_option("--held-fd", options->held_fd)->group("");
  verb->add_option("--beat-fd", options->beat_fd)->group("");
  verb->add_option("--end-fd", options->end_fd)->group("");
  verb->footer(
      "Example:\n  muster scaler --job job.yaml --master 127.0.0.1:20123 --run-id one --trainer "
      "$PWD/trainer\nWhen it ends, the nodes continue, and `muster run` starts another scaler.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
