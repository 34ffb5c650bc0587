#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddResize(CLI::App* app, Chosen* chosen, Command<steer::ResizeOptions> command) {
  const auto options = std::make_shared<steer::ResizeOptions>();
  CLI::App* verb = app->add_subcommand("resize", "Give a worker or a server other limits");
  AddNodeAndJob(verb, &options->node, &options->order.query, "ps-0, worker-1, ...");
  AddOrder(verb, &options->order);
  verb->add_option("--memory", options->memory, "As in a job file: 512Mi, 1.5Gi");
  verb->add_option("--cpus", options->cpus, "Cores: 1.5, or 500m");
  verb->footer(
      "Examples:\n"
      "  muster resize job.yaml ps-0 --memory 512Mi\n"
      "  muster resize job.yaml worker-1 --cpus 1.5 --wait");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
