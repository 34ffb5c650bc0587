#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddEvents(CLI::App* app, Chosen* chosen, Command<steer::EventsOptions> command) {
  const auto options = std::make_shared<steer::EventsOptions>();
  CLI::App* verb = app->add_subcommand(
      "events", "What happened and what was decided, oldest first, also after the run");
  AddTarget(verb, &options->query);
  verb->add_flag("-f,--follow", options->follow, "Go on until the run ends");
  verb->add_option("-n,--last", options->last, "Only so many of the newest");
  verb->add_option("--after", options->after, "Only what came after this event of the scaler");
  verb->add_option("--kind", options->kinds,
                   "Only these: decision, outcome, exit, action, note (of the scaler), "
                   "node-exited, shard-failed, ... (of the master)")
      ->expected(1)
      ->take_all();
  verb->add_option("--node", options->node, "Only of this node");
  verb->footer(
      "Examples:\n"
      "  muster events job.yaml -n 20\n"
      "  muster events job.yaml --follow --kind decision --kind outcome\n"
      "  muster events job.yaml --node ps-0 --after 12\n"
      "Events with a number (#12) are the scaler's: muster explain 12 tells more.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
