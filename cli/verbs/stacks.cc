#include "cli/cluster/cluster_verbs.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddStacks(CLI::App* app, Chosen* chosen, Command<StacksOptions> command) {
  const auto options = std::make_shared<StacksOptions>();
  CLI::App* verb =
      app->add_subcommand("stacks", "Show what the threads of a node do now; the job continues");
  AddNodeAndJob(verb, &options->node, &options->query, "master, scaler, ps-0, worker-1, ...");
  AddOutput(verb, &options->query.output);
  verb->add_option("--timeout", options->timeout_s, "Wait at most this many seconds (10)")
      ->check(CLI::Range(1, 600));
  verb->footer(
      "Each thread is held for some milliseconds. A node that hangs gives an answer, too, because "
      "no\nprocess of the job is asked. Of functions of an interpreter (Python), only the "
      "interpreter's are\nshown.\n"
      "Examples:\n  muster stacks job.yaml worker-1\n  muster stacks master > stacks.txt");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      const bool is_away = options->query.target.cluster.is_set();
      return is_away ? cluster::StacksOnCluster(*options) : command(*options);
    };
  });
}

}  // namespace muster
