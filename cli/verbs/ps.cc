#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddPs(CLI::App* app, Chosen* chosen, Command<ServerCommandOptions> command) {
  const auto options = std::make_shared<ServerCommandOptions>();
  CLI::App* verb =
      app->add_subcommand("ps", "Run a parameter server (muster run does; for containers by hand)");
  verb->group("");  // not listed
  verb->add_option("--name", options->name, "ps-0, ps-1, ...")->required();
  verb->add_option("--start", options->start,
                   "The start number of this process: 1 for the first of this name in the run. The "
                   "master refuses a process that is older than the newest. 0: not known (0)")
      ->envname("MUSTER_START");
  verb->add_option("--master", options->master_address, "127.0.0.1:PORT")->required();
  verb->add_option("--socket-directory", options->socket_directory,
                   "Folder for UNIX sockets; TCP only if absent");
  verb->add_option("--job-id", options->job_id,
                   "Of the job: masters of other jobs are not spoken with");
  verb->add_option("--threads", options->threads, "Threads, each with its own partitions (1)")
      ->check(CLI::Range(1, 256));
  verb->add_option("--drain-timeout", options->drain_timeout_s,
                   "Seconds that it waits for its snapshots when it gets SIGTERM (8)")
      ->check(CLI::Range(1, 86'400));
  verb->footer("Example:\n  muster ps --name ps-0 --master 127.0.0.1:20123");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
