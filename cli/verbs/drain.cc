#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddDrain(CLI::App* app, Chosen* chosen, Command<steer::DrainOptions> command) {
  const auto options = std::make_shared<steer::DrainOptions>();
  CLI::App* verb =
      app->add_subcommand("drain", "Finish the shards in progress, take snapshots, end the run");
  AddTarget(verb, &options->query);
  AddReason(verb, &options->reason);
  AddOptionalNode(verb, &options->node, &options->query,
                  "Drain only this worker or server; the job continues");
  AddWaitFlag(verb, &options->wait, "Of a node: wait until it is drained");
  verb->add_option("--timeout", options->timeout_s,
                   "Of a node: wait at most this many seconds, after which it counts as drained "
                   "(the job's drainTimeout)")
      ->check(CLI::Range(1, 86'400));
  verb->add_flag("--undo", options->undo,
                 "Of a node: cancel the drain; not possible if a worker has heard of it");
  verb->footer(
      "Examples:\n"
      "  muster drain job.yaml                          # resume with: muster run job.yaml\n"
      "  muster drain job.yaml ps-1 --wait              # then little work is lost if it stops\n"
      "  muster drain job.yaml worker-2                 # it finishes its shard and ends");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
