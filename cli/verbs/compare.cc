#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddCompare(CLI::App* app, Chosen* chosen, Command<metrics::CompareOptions> command) {
  const auto options = std::make_shared<metrics::CompareOptions>();
  CLI::App* verb = app->add_subcommand(
      "compare", "Compare jobs: metrics, rates, times, nodes, and the settings that differ");
  verb->add_option("jobs", options->jobs, "Two or more state directories or job files")
      ->required()
      ->expected(-2);  // at least
  AddOutput(verb, &options->output);
  verb->footer(
      "Examples:\n"
      "  muster compare state-a state-b               # two state directories\n"
      "  muster compare a.yaml b.yaml --output json   # the jobs of two job files\n"
      "The jobs may run, or may have ended. A job that was resumed is one job with several runs.\n"
      "Values of environment variables whose names contain KEY, TOKEN, SECRET or PASSWORD are\n"
      "shown as (hidden).");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
