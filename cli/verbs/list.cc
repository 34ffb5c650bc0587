#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddList(CLI::App* app, Chosen* chosen, Command<ListOptions> command) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App* verb = app->add_subcommand("list", "List the jobs that run on this machine");
  AddOutput(verb, &options->output);
  verb->footer("Examples:\n  muster list\n  muster list --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
