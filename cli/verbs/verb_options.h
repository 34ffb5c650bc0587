#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/ask/query_commands.h"
#include "cli/cluster/job_link.h"
#include "cli/steer/order_commands.h"
#include "cli/verbs/verbs.h"

/// Options that several verbs have.
namespace muster {

/// --output text|json.
void AddOutput(CLI::App* verb, OutputFormat* output);

/// --on kubernetes, --context, --namespace and --kubeconfig. They say where the job of a verb is,
/// if it is not on this machine.
void AddClusterPlace(CLI::App* verb, ClusterTarget* cluster);

/// The job of a verb: its file, --state-dir, or --job for a cluster.
void AddJob(CLI::App* verb, QueryOptions* options);

/// The subject of a verb. Subject and job may come in either order: they are swapped if only the
/// second one looks like the subject.
struct Subject {
  std::string name;  // "node"
  std::string help;
  std::string example;  // of a command line: "restart job.yaml worker-1"
  bool (*is_one)(const std::string& text);
};
void AddSubjectAndJob(CLI::App* verb, const Subject& subject, std::string* value,
                      QueryOptions* options);

/// The node of a verb, also as --node, and the job. `examples` are names of nodes.
void AddNodeAndJob(CLI::App* verb, std::string* node, QueryOptions* options,
                   const std::string& examples);
/// A node to which a verb may be restricted, as an argument after the job or as --node. Add the job
/// before.
void AddOptionalNode(CLI::App* verb, std::string* node, QueryOptions* options,
                     const std::string& help);
/// The nodes of a verb, if any are named, and the job, in any order; or --node for each node.
void AddNodesAndJob(CLI::App* verb, std::vector<std::string>* nodes, QueryOptions* options,
                    const std::string& help);
/// The number of an event, and the job.
void AddEventAndJob(CLI::App* verb, std::string* event, QueryOptions* options);
/// A policy, and the job.
void AddPolicyAndJob(CLI::App* verb, std::string* policy, QueryOptions* options);

/// --output and the job, as above.
void AddJobAndOutput(CLI::App* verb, QueryOptions* options);

/// The same and --master, for a verb that a master can answer by itself.
void AddTarget(CLI::App* verb, QueryOptions* options);

/// The same and --no-wait, for a verb that asks and changes nothing.
void AddQuestion(CLI::App* verb, QueryOptions* options);

/// --reason: why the order is given, for the record.
void AddReason(CLI::App* verb, std::string* reason);

/// -n or --limit, and --offset, for a long list.
void AddPage(CLI::App* verb, uint32_t* limit, uint64_t* offset);

/// --wait and --no-wait, which is the default.
void AddWaitFlag(CLI::App* verb, bool* wait, const std::string& help);
/// The same for the outcome of an order, with --timeout.
void AddWait(CLI::App* verb, steer::OrderOptions* order);

/// A hidden option for tests of the checks. A build without such bugs refuses it with a reason.
void AddPlantedBug(CLI::App* verb, std::string* name);

/// What `run` and `train` have in common: the options, the last lines of their help, and what they
/// do with the options: `command`, or a run on the cluster that they name.
void AddRunOptions(CLI::App* verb, RunOptions* options);
extern const char* const kRunEnds;
int RunHereOrThere(const RunOptions& options, const Command<RunOptions>& command);

/// The question or order inside a verb's options; null if they have none.
template <typename Options>
QueryOptions* QueryIn(Options* options) {
  if constexpr (std::is_same_v<Options, QueryOptions>) {
    return options;
  } else if constexpr (requires { options->query.target; }) {
    return &options->query;
  } else if constexpr (requires { options->options.query; }) {
    return &options->options.query;
  } else {
    return nullptr;
  }
}

/// Passes `options` to `command`. If the job is on a cluster, it does so over a link.
template <typename Options>
int Act(Options options, const Command<Options>& command,
        cluster::WhenPending when_pending = cluster::WhenPending::kSay) {
  QueryOptions* const query = QueryIn(&options);
  if (query == nullptr || !query->target.cluster.is_set()) return command(options);
  return cluster::OverLink(query, when_pending, [&] { return command(options); });
}

/// If the verb is chosen, it passes its options to `command`.
template <typename Options>
void Choose(CLI::App* verb, Chosen* chosen, std::shared_ptr<Options> options,
            Command<Options> command) {
  verb->callback([chosen, options = std::move(options), command = std::move(command)] {
    *chosen = [options, command] { return Act(*options, command); };
  });
}

}  // namespace muster
