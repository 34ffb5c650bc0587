#include "base/status.h"
#include "cli/steer/timeline.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddEvents(CLI::App* app, Chosen* chosen, Command<steer::EventsOptions> command) {
  const auto options = std::make_shared<steer::EventsOptions>();
  CLI::App* verb =
      app->add_subcommand("events", "Show what happened and what was decided, oldest first");
  AddQuestion(verb, &options->query);
  verb->add_flag("-f,--follow", options->follow, "Show new events until the run ends");
  verb->add_option("-n,--last", options->last, "Show only the newest N");
  verb->add_option("--after", options->after,
                   "Show only what came after this event of the scaler (12)");
  verb->add_option("--kind", options->kinds,
                   "Show only these kinds: decision, outcome, exit, action, note (of the scaler), "
                   "node-exited, shard-failed, ... (of the master; a wrong one lists all)")
      ->take_all()
      ->allow_extra_args(false)
      ->check([](const std::string& word) {
        const absl::Status known = steer::CheckEventKind(word);
        return std::string(known.ok() ? "" : Message(known));
      });
  AddOptionalNode(verb, &options->node, &options->query, "Show only events of this node");
  verb->footer(
      "Examples:\n"
      "  muster events job.yaml -n 20\n"
      "  muster events job.yaml --follow --kind decision --kind outcome\n"
      "  muster events job.yaml --node ps-0 --after 12\n"
      "Events with a number (#12) are the scaler's; `muster explain 12` explains this one.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
