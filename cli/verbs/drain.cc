#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddDrain(CLI::App* app, Chosen* chosen, Command<steer::DrainOptions> command) {
  const auto options = std::make_shared<steer::DrainOptions>();
  CLI::App* verb =
      app->add_subcommand("drain", "Let workers finish what they hold, snapshot, end the run");
  AddTarget(verb, &options->query);
  AddReason(verb, &options->reason);
  verb->add_option("--node", options->node,
                   "Only this worker or server; the job goes on without it");
  verb->add_flag("--wait", options->wait, "With --node: until it is drained");
  verb->add_option("--timeout", options->timeout_s,
                   "With --node: seconds after which it counts as drained as it is (the job's "
                   "drainTimeout)")
      ->check(CLI::Range(1, 86'400));
  verb->add_flag("--undo", options->undo,
                 "With --node: take it back, unless a worker has heard of it");
  verb->footer(
      "Examples:\n"
      "  muster drain job.yaml                          # resume with: muster run job.yaml\n"
      "  muster drain job.yaml --node ps-1 --wait       # its snapshots are new: stop it cheaply\n"
      "  muster drain job.yaml --node worker-2          # it finishes its shard and ends");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
