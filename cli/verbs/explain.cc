#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddExplain(CLI::App* app, Chosen* chosen, Command<steer::ExplainOptions> command) {
  const auto options = std::make_shared<steer::ExplainOptions>();
  CLI::App* verb = app->add_subcommand(
      "explain", "Explain an event: its cause, evidence, values before and after, outcome");
  AddEventAndJob(verb, &options->event, &options->query);
  AddOutput(verb, &options->query.output);
  verb->footer("Examples:\n  muster explain 12 job.yaml\n  muster explain 12 --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
