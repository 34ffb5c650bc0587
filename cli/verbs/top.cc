#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddTop(CLI::App* app, Chosen* chosen, Command<steer::TopOptions> command) {
  const auto options = std::make_shared<steer::TopOptions>();
  CLI::App* verb = app->add_subcommand("top", "Show live what the job does, until you press q");
  AddJobAndOutput(verb, &options->query);
  verb->add_option("--interval", options->interval_s, "Seconds between two updates (1)")
      ->check(CLI::Range(0.1, 3'600.0));
  verb->add_flag("--once", options->once, "Print once (after two measurements) and end");
  verb->footer(
      "Examples:\n"
      "  muster top job.yaml                          # q or Ctrl-C ends top, not the job\n"
      "  muster top job.yaml --once\n"
      "  muster top job.yaml --interval 10 --output json >> figures.jsonl");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
