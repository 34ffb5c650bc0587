#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddRestart(CLI::App* app, Chosen* chosen, Command<steer::RestartOptions> command) {
  const auto options = std::make_shared<steer::RestartOptions>();
  CLI::App* verb =
      app->add_subcommand("restart", "End a worker's or a server's process and start it anew");
  AddNodeAndJob(verb, &options->node, &options->order.query, "ps-0, worker-1, ...");
  AddOrder(verb, &options->order);
  verb->footer(
      "Examples:\n"
      "  muster restart job.yaml worker-1 --reason 'looks stuck'\n"
      "  muster restart job.yaml ps-0 --wait      # until it serves again; nothing is lost");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
