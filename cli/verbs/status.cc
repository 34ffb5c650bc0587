#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddStatus(CLI::App* app, Chosen* chosen, Command<QueryOptions> command) {
  const auto options = std::make_shared<QueryOptions>();
  CLI::App* verb =
      app->add_subcommand("status", "Show progress, nodes and counters, during or after the run");
  AddTarget(verb, options.get());
  verb->footer(
      "Examples:\n  muster status job.yaml\n  muster status --state-dir state --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
