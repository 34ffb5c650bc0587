#include "base/status.h"
#include "cli/cluster/cluster_verbs.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddWait(CLI::App* app, Chosen* chosen, Command<steer::WaitOptions> command) {
  const auto options = std::make_shared<steer::WaitOptions>();
  CLI::App* verb =
      app->add_subcommand("wait", "Wait until a job ends, runs, or a node is in a state");
  AddTarget(verb, &options->query);
  verb->add_option("--for", options->awaited,
                   "end (the default), running (a worker runs), or NODE=STATE")
      ->check([](const std::string& text) {
        const absl::Status known = steer::ParseAwaited(text).status();
        return std::string(known.ok() ? "" : Message(known));
      });
  verb->add_option("--timeout", options->timeout_s,
                   "Seconds (no limit for end, 300 for everything else)")
      ->check(CLI::Range(1, 31'536'000));
  verb->footer(
      "For `end`, the exit code is that of the run: 0 succeeded, 1 failed, 3 drained or stopped,\n"
      "4 cancelled. If the time is over, or the job ends without what is awaited, it is 1.\n"
      "Examples:\n"
      "  muster wait job.yaml\n"
      "  muster wait job.yaml --for running --timeout 60\n"
      "  muster wait job.yaml --for worker-1=finished");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      const bool is_away = options->query.target.cluster.is_set();
      if (is_away && options->awaited == "end") return cluster::WaitForEndOnCluster(*options);
      return Act(*options, command, cluster::WhenPending::kGoOn);
    };
  });
}

}  // namespace muster
