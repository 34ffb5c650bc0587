#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/query_commands.h"

/// Options that many verbs have.
namespace muster {

/// --output text|json.
void AddOutput(CLI::App* verb, OutputFormat* output);

/// The job of a verb: its file, or --state-dir.
void AddJob(CLI::App* verb, QueryOptions* options);

/// What a verb is about, and the job, in either order: they change places when only the second
/// looks like what the verb is about.
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

}  // namespace muster
