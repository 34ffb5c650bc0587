#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddPartitions(CLI::App* app, Chosen* chosen, Command<PartitionsOptions> command) {
  const auto options = std::make_shared<PartitionsOptions>();
  CLI::App* verb = app->add_subcommand(
      "partitions", "Show the weights' partitions: owner, snapshot, rows, traffic");
  AddQuestion(verb, &options->query);
  AddPage(verb, &options->limit, &options->offset);
  verb->footer("Example:\n  muster partitions job.yaml --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
