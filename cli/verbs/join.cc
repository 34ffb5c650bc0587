#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddJoin(CLI::App* app, Chosen* chosen, Command<JoinOptions> command) {
  const auto options = std::make_shared<JoinOptions>();
  CLI::App* verb =
      app->add_subcommand("join", "Run a worker or a server of a job of another machine here");
  verb->add_option("master", options->master_address, "HOST:PORT of the job's master")->required();
  verb->add_option("--role", options->role, "worker or ps")
      ->required()
      ->check(CLI::IsMember({"worker", "ps"}));
  verb->add_option("--name", options->name,
                   "Name of the node: ps-1, or of a worker any that is free (a worker: the name of "
                   "this machine; a server: the only one that joins)");
  verb->add_option("--token-file", options->token_file,
                   "Copy of scaler/join-worker or scaler/join-ps of the job's state directory "
                   "(token in --state-dir)");
  verb->add_option("--tls", options->tls,
                   "Folder with copies of ca.crt, and of ROLE.crt and ROLE.key, from tls of the "
                   "job's state directory (none: plain text)");
  verb->add_option("--state-dir", options->state_directory,
                   "Folder for logs and sockets of this node (muster-join)");
  verb->add_option("--data-root", options->data_root,
                   "Folder on this machine that holds what the job file's folder holds there; a "
                   "worker reads data there (the same path as there)");
  verb->add_option("--snapshot-root", options->snapshot_root,
                   "Folder of the job's snapshots on this machine (the same path as there)");
  verb->add_option("--address", options->address,
                   "Of a server: host at which to listen (the address by which it reaches the "
                   "master)");
  verb->add_option("--advertise", options->advertise,
                   "Of a server: host by which workers reach it (the one at which it listens)");
  verb->add_option("--ports", options->ports,
                   "Of a server: ports at which to listen, 7100-7199 or 0 for free ones (0)");
  verb->add_flag("--insecure", options->insecure,
                 "Speak plain text with other machines, as spec.security.insecure of the job");
  verb->add_option("--patience", options->patience_s,
                   "Seconds that the master may be away until the node is given up (600)")
      ->check(CLI::Range(1, 604'800));
  verb->add_option("command", options->command, "After --: the trainer and its arguments");
  verb->footer(
      "Examples:\n"
      "  muster join 10.0.0.1:26500 --role ps --name ps-1 --token-file join-ps --tls tls\n"
      "  muster join 10.0.0.1:26500 --role worker --token-file join-worker --tls tls -- ./trainer\n"
      "Ctrl-C lets the node leave; a second Ctrl-C ends it. docs/network.md has a whole example.\n"
      "Exit codes: 0 the job is over or the node left, 1 it crashed too often, 2 bad arguments or "
      "a "
      "refusal,\n"
      "5 the master was away for too long.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
