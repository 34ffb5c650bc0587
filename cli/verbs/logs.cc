#include "base/status.h"
#include "cli/cluster/cluster_logs.h"
#include "cli/show/moment.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddLogs(CLI::App* app, Chosen* chosen, Command<LogsOptions> command) {
  const auto options = std::make_shared<LogsOptions>();
  CLI::App* verb = app->add_subcommand("logs", "Show the output of nodes, during or after the run");
  AddNodesAndJob(verb, &options->nodes, &options->query,
                 "Nodes (all, if none is named): master, ps-0, worker-1, ...");
  AddOutput(verb, &options->query.output);
  verb->add_option("-n,--lines,--tail", options->lines,
                   "How many lines from the end of each (100 of one node, 10 of each of several, "
                   "all with --since); -1: all");
  verb->add_option("--since", options->since,
                   "Show only lines since this time: 5m (ago), or 2026-01-31T12:34:56Z")
      ->check([](const std::string& text) {
        const absl::Status known = ParseSince(text, WallTime(0)).status();
        return std::string(known.ok() ? "" : Message(known));
      });
  verb->add_flag("-f,--follow", options->follow, "Show new lines until the run ends");
  verb->footer(
      "Examples:\n  muster logs job.yaml worker-0\n  muster logs job.yaml master -n 20 -f\n"
      "  muster logs job.yaml worker-0 ps-1 --since 5m     # each line begins with its node\n"
      "  muster logs job.yaml -f                           # all nodes");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      const bool is_away = options->query.target.cluster.is_set();
      return is_away ? cluster::LogsOnCluster(*options) : command(*options);
    };
  });
}

}  // namespace muster
