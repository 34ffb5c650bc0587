#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddNodes(CLI::App* app, Chosen* chosen, Command<QueryOptions> command) {
  const auto options = std::make_shared<QueryOptions>();
  CLI::App* verb =
      app->add_subcommand("nodes", "Show the processes of a job, during or after the run");
  AddQuestion(verb, options.get());
  verb->footer("Example:\n  muster nodes job.yaml --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
