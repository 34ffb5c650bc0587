#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddLogs(CLI::App* app, Chosen* chosen, Command<LogsOptions> command) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* verb =
      app->add_subcommand("logs", "Show the output of a node, during or after the run");
  AddNodeAndJob(verb, &options->node, &options->query, "master, ps-0, worker-1, ...");
  AddOutput(verb, &options->query.output);
  verb->add_option("-n,--lines", options->lines, "How many lines from the end (100)");
  verb->add_flag("-f,--follow", options->follow, "Show new lines until the run ends");
  verb->footer(
      "Examples:\n  muster logs job.yaml worker-0\n  muster logs job.yaml master -n 20 -f");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
