#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddPs(CLI::App* app, Chosen* chosen, Command<ServerCommandOptions> command) {
  const auto options = std::make_shared<ServerCommandOptions>();
  CLI::App* verb = app->add_subcommand(
      "ps", "Run a parameter server; the scaler starts it, except in containers");
  verb->group("");  // not listed
  verb->add_option("--name", options->name, "ps-0, ps-1, ...")->required();
  verb->add_option("--start", options->start,
                   "Number of starts of this name in the run, from 1. The master refuses a process "
                   "with a smaller number than the newest. 0: not known (0)")
      ->envname("MUSTER_START");
  verb->add_option("--master", options->master_address, "HOST:PORT")->required();
  verb->add_option("--socket-directory", options->socket_directory,
                   "Folder for UNIX sockets; without it, only TCP is used");
  verb->add_option("--address", options->address,
                   "Host at which to listen (the address by which it reaches the master)");
  verb->add_option("--advertise", options->advertise,
                   "Host by which workers reach it (the one at which it listens)");
  verb->add_option("--ports", options->ports,
                   "Ports at which to listen: 7100-7199, one port, or 0 for free ones (0)");
  verb->add_flag("--insecure", options->insecure,
                 "Allow plain text on addresses that other machines reach");
  verb->add_option("--snapshot-root", options->snapshot_root,
                   "Folder of the job's snapshots on this machine (the same path as the master's)");
  verb->add_option("--job-id", options->job_id, "Id of the job; masters of other jobs are ignored");
  verb->add_option("--tls", options->tls,
                   "Folder with ca.crt, and with this role's certificate and key: connections are "
                   "TLS (plain text)");
  verb->add_option("--threads", options->threads, "Threads, each with its own partitions (1)")
      ->check(CLI::Range(1, 256));
  verb->add_option("--drain-timeout", options->drain_timeout_s,
                   "Seconds to wait for its snapshots after SIGTERM (8)")
      ->check(CLI::Range(1, 86'400));
  verb->add_option("--master-away-max", options->master_away_max_s,
                   "Seconds after which it ends if the master does not answer. 0: never (0)")
      ->envname("MUSTER_MASTER_AWAY_MAX");
  verb->footer("Example:\n  muster ps --name ps-0 --master 127.0.0.1:20123");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
