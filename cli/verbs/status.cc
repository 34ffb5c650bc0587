#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddStatus(CLI::App* app, Chosen* chosen, Command<StatusOptions> command) {
  const auto options = std::make_shared<StatusOptions>();
  CLI::App* verb = app->add_subcommand(
      "status", "Show progress, metrics, nodes and counters, during or after the run");
  AddQuestion(verb, &options->query);
  verb->add_flag("--all-epochs", options->all_epochs,
                 "Show each epoch of a long job, with its metrics, not only the newest ones");
  verb->footer(
      "Examples:\n  muster status job.yaml\n  muster status --state-dir state --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
