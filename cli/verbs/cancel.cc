#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddCancel(CLI::App* app, Chosen* chosen, Command<steer::CancelOptions> command) {
  const auto options = std::make_shared<steer::CancelOptions>();
  CLI::App* verb = app->add_subcommand("cancel", "End the job now; committed work stays");
  AddTarget(verb, &options->query);
  AddReason(verb, &options->reason);
  verb->footer("Example:\n  muster cancel job.yaml --reason 'wrong learning rate'");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
