#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/ask/query_commands.h"
#include "cli/steer/order_commands.h"
#include "cli/verbs/verbs.h"

/// Options that many verbs have.
namespace muster {

/// --output text|json.
void AddOutput(CLI::App* verb, OutputFormat* output);

/// The job of a verb: its file, or --state-dir.
void AddJob(CLI::App* verb, QueryOptions* options);

/// The subject of a verb and the job, in either order: they are swapped if only the second one
/// looks like the subject.
struct Subject {
  std::string name;  // "node"
  std::string help;
  std::string example;  // of a command line: "restart job.yaml worker-1"
  bool (*is_one)(const std::string& text);
};
void AddSubjectAndJob(CLI::App* verb, const Subject& subject, std::string* value,
                      QueryOptions* options);

/// The node that a verb is about, and the job. `examples`: of nodes.
void AddNodeAndJob(CLI::App* verb, std::string* node, QueryOptions* options,
                   const std::string& examples);
/// The event, by its number, and the job.
void AddEventAndJob(CLI::App* verb, std::string* event, QueryOptions* options);
/// The policy, and the job.
void AddPolicyAndJob(CLI::App* verb, std::string* policy, QueryOptions* options);

/// --output and the job, as above.
void AddJobAndOutput(CLI::App* verb, QueryOptions* options);

/// As above, and --master, for a verb that a master can answer by itself.
void AddTarget(CLI::App* verb, QueryOptions* options);

/// Why, for the record.
void AddReason(CLI::App* verb, std::string* reason);

/// --wait, for the outcome of an order.
void AddWait(CLI::App* verb, steer::OrderOptions* order);

/// Hidden: for tests of the checks. Refused with a reason by a build that has no such bugs.
void AddPlantedBug(CLI::App* verb, std::string* name);

/// If the verb is named, it passes its options to `command`.
template <typename Options>
void Choose(CLI::App* verb, Chosen* chosen, std::shared_ptr<Options> options,
            Command<Options> command) {
  verb->callback([chosen, options = std::move(options), command = std::move(command)] {
    *chosen = [options, command] { return command(*options); };
  });
}

}  // namespace muster
