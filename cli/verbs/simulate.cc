#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddSimulate(CLI::App* app, Chosen* chosen, Command<simulate::SimulateOptions> command) {
  const auto options = std::make_shared<simulate::SimulateOptions>();
  CLI::App* verb = app->add_subcommand(
      "simulate", "Show what the policies would decide, over a recorded run or in a described job");
  verb->add_option("--history", options->history,
                   "State directory of a job, or its folder scaler/history");
  verb->add_option("--described", options->described,
                   "A job described in YAML (docs/cli.md), played in virtual time");
  verb->add_option("--job", options->job_file,
                   "Take the thresholds of this job file (spec.scaler), not the defaults");
  verb->add_option("--policy", options->policies, "Use only this policy; may be repeated")
      ->expected(1)
      ->take_all();
  verb->add_flag("--dry-run", options->dry_run, "Policies decide, but nothing is done");
  verb->add_option("--from", options->from,
                   "Begin the history here: 10m (since its beginning), or 2026-01-31T12:34:56Z");
  verb->add_option("--to", options->to, "End the history here");
  AddOutput(verb, &options->output);
  verb->footer(
      "Examples:\n"
      "  muster simulate --history state                       # of a job that runs or has run\n"
      "  muster simulate --history state --job other.yaml      # with other thresholds\n"
      "  muster simulate --history state --policy worker-straggler --from 10m --to 20m\n"
      "  muster simulate --described what-if.yaml --output json\n"
      "Nothing is started, stopped or changed.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
