#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddShards(CLI::App* app, Chosen* chosen, Command<ShardsOptions> command,
               Command<steer::RetryOptions> retry_command) {
  const auto options = std::make_shared<ShardsOptions>();
  const auto retry_options = std::make_shared<steer::RetryOptions>();
  CLI::App* verb = app->add_subcommand(
      "shards", "Show shards that are in progress, done but not committed, or failed");
  AddQuestion(verb, &options->query);
  verb->add_option("--state", options->state,
                   "Show only shards in this state: leased, done or failed")
      ->check(CLI::IsMember({"leased", "done", "failed"}));
  AddPage(verb, &options->limit, &options->offset);
  CLI::Option* retry = verb->add_option("--retry", retry_options->ids,
                                        "Try FAILED shards again: those with these ids, or all")
                           ->expected(0, 1'000'000);
  verb->footer(
      "Examples:\n"
      "  muster shards job.yaml --state failed\n"
      "  muster shards job.yaml --retry\n"
      "  muster shards job.yaml --retry 0/1/17 0/1/18");
  verb->callback([=] {
    if (retry->count() == 0) {
      *chosen = [=] { return Act(*options, command); };
      return;
    }
    std::erase_if(retry_options->ids,
                  [](const std::string& id) { return id.empty() || id == "{}"; });
    retry_options->query = options->query;
    *chosen = [=] { return Act(*retry_options, retry_command); };
  });
}

}  // namespace muster
