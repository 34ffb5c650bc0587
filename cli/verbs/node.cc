#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddNode(CLI::App* app, Chosen* chosen, Command<PodNodeOptions> command) {
  const auto options = std::make_shared<PodNodeOptions>();
  options->termination_log = "/dev/termination-log";
  CLI::App* verb =
      app->add_subcommand("node", "Run a worker or a server once, as the entry point of its pod");
  verb->group("");  // not listed
  verb->add_option("--role", options->role, "worker or ps")
      ->required()
      ->check(CLI::IsMember({"worker", "ps"}));
  verb->add_option("--job", options->job_file, "Job file (/etc/muster/job/job.yaml)");
  verb->add_option("--termination-log", options->termination_log,
                   "Where the exit note goes (/dev/termination-log)");
  verb->add_option("--directory", options->directory,
                   "Folder for log, slot and sockets (muster-node in $TMPDIR or /tmp)");
  verb->add_option("--master", options->master_address,
                   "HOST:PORT of the master (the job's Service)");
  verb->add_option("--tls", options->tls, "Folder with the certificates (/etc/muster/tls)");
  verb->add_flag("--plain-text", options->plain_text)->group("");
  verb->footer(
      "Example:\n  muster node --role worker\n"
      "It needs the environment of a pod, which `muster manifests` prints.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
