#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddCancel(CLI::App* app, Chosen* chosen, Command<steer::CancelOptions> command) {
  const auto options = std::make_shared<steer::CancelOptions>();
  CLI::App* verb = app->add_subcommand("cancel", "End the job now; committed work stays");
  AddTarget(verb, &options->query);
  AddReason(verb, &options->reason);
  // A plain flag would become false if it is not given, and then no person would be asked.
  verb->add_flag_function(
      "--snapshot,!--no-snapshot", [options](std::int64_t given) { options->snapshot = given > 0; },
      "Commit first what is trained now (asked at a terminal; --no-snapshot elsewhere)");
  verb->add_option("--timeout", options->timeout_s,
                   "With --snapshot: if it takes longer than this many seconds, do not cancel (60)")
      ->check(CLI::Range(1, 86'400));
  verb->footer(
      "Examples:\n"
      "  muster cancel job.yaml --reason 'wrong learning rate'\n"
      "  muster cancel job.yaml --snapshot       # shards in work are lost, trained ones are not");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
