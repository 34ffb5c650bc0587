#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddMaster(CLI::App* app, Chosen* chosen, Command<MasterCommandOptions> command) {
  const auto options = std::make_shared<MasterCommandOptions>();
  CLI::App* verb =
      app->add_subcommand("master", "Run a master; `muster run` starts it, except in containers");
  verb->group("");  // not listed
  verb->add_option("--job", options->job_file, "Job file")->required();
  verb->add_option("--base-directory", options->base_directory,
                   "Folder where relative paths of the job file begin (the job file's folder)");
  verb->add_option("--listen", options->listen_address, "HOST:PORT")->required();
  verb->add_option("--run-id", options->run_id,
                   "Id of this run; a new id means that all processes of older runs are dead")
      ->required();
  verb->add_option("--cluster-namespace", options->cluster_namespace,
                   "Namespace of the job on Kubernetes, in the job's own pod (no cluster)");
  verb->add_option("--job-id", options->job_id,
                   "Id of the job, a random number from its beginning; the journal also has it");
  verb->add_option("--tls", options->tls,
                   "Folder with ca.crt, and with this role's certificate and key: connections are "
                   "TLS (plain text)");
  verb->add_flag("--retry-failed", options->retry_failed, "Try FAILED shards again");
  verb->add_option("--started-by", options->started_by,
                   "A random id of the process that starts this master, and starts it again");
  verb->add_flag("--take-over", options->take_over,
                 "Take the job from a master that may still run, because its machine is lost");
  verb->add_option("--beat-fd", options->beat_fd)->group("");
  AddPlantedBug(verb, &options->planted_bug);
  verb->footer("Example:\n  muster master --job job.yaml --listen 127.0.0.1:20123 --run-id one");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
