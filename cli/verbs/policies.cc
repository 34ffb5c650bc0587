#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddPolicies(CLI::App* app, Chosen* chosen, Command<QueryOptions> command,
                 Command<steer::GivenOrder> order_command) {
  const auto options = std::make_shared<QueryOptions>();
  CLI::App* list = app->add_subcommand(
      "policies", "Show, pause or resume the policies that decide automatically");
  AddJobAndOutput(list, options.get());
  list->footer(
      "Examples:\n"
      "  muster policies job.yaml\n"
      "  muster policies pause worker-straggler job.yaml --reason 'this machine is shared'\n"
      "  muster policies resume worker-straggler job.yaml");
  list->callback([=] {
    if (!*chosen)
      *chosen = [=] { return Act(*options, command); };  // otherwise a verb below was chosen
  });
  AddPolicyOrders(list, chosen, std::move(order_command));
}

}  // namespace muster
