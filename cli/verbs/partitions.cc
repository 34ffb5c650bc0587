#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddPartitions(CLI::App* app, Chosen* chosen, Command<PartitionsOptions> command) {
  const auto options = std::make_shared<PartitionsOptions>();
  CLI::App* verb = app->add_subcommand(
      "partitions", "Show the weights' partitions: owner, snapshot, rows, traffic");
  AddTarget(verb, &options->query);
  verb->add_option("--limit", options->limit, "Show at most N (1000)")
      ->check(CLI::Range(1, 10'000));
  verb->add_option("--offset", options->offset, "Leave out the first N");
  verb->footer("Example:\n  muster partitions job.yaml --output json");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
