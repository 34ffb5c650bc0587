#include "cli/cluster/cluster_verbs.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddList(CLI::App* app, Chosen* chosen, Command<ListOptions> command) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App* verb =
      app->add_subcommand("list", "List the jobs that run on this machine, or on a cluster");
  AddOutput(verb, &options->output);
  AddClusterPlace(verb, &options->cluster);
  verb->footer(
      "Examples:\n  muster list\n  muster list --output json\n  muster list --on kubernetes "
      "--namespace team");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      return options->cluster.is_set() ? cluster::ListOnCluster(options->cluster, options->output)
                                       : command(*options);
    };
  });
}

}  // namespace muster
