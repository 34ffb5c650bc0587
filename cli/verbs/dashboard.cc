#include "cli/cluster/job_link.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddDashboard(CLI::App* app, Chosen* chosen, Command<steer::DashboardOptions> command) {
  const auto options = std::make_shared<steer::DashboardOptions>();
  CLI::App* verb =
      app->add_subcommand("dashboard", "Print the address of a running job's page, or open it");
  AddJobAndOutput(verb, &options->query);
  verb->add_flag("--open", options->open, "Open the page in the browser (xdg-open)");
  verb->footer(
      "The address contains the job's token. Anyone who has the token can give orders to the job.\n"
      "Examples:\n"
      "  muster dashboard job.yaml\n"
      "  muster dashboard job.yaml --open");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      QueryOptions* const query = &options->query;
      if (!query->target.cluster.is_set()) return command(*options);
      options->stays = true;
      return cluster::OverLinkUntilSignal(query, [&] { return command(*options); });
    };
  });
}

}  // namespace muster
