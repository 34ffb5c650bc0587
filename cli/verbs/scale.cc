#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"
#include "sharding/limits.h"

namespace muster {

void AddScale(CLI::App* app, Chosen* chosen, Command<steer::ScaleOptions> command) {
  const auto options = std::make_shared<steer::ScaleOptions>();
  CLI::App* verb = app->add_subcommand("scale", "Train with more or fewer workers");
  AddJob(verb, &options->order.query);
  AddOrder(verb, &options->order);
  verb->add_option("--workers", options->workers, "How many there shall be")
      ->required()
      ->check(CLI::Range(1u, kWorkersMax));
  verb->footer(
      "Examples:\n"
      "  muster scale job.yaml --workers 4\n"
      "  muster scale job.yaml --workers 2 --wait     # those that leave finish their shards\n"
      "The number holds: the policy worker-count is paused, until the job ends or you lift it "
      "with\n"
      "  muster policies resume worker-count job.yaml");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
