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

/// The node that a verb is about, and the job, in either order. `examples`: of nodes.
void AddNodeAndJob(CLI::App* verb, std::string* node, QueryOptions* options,
                   const std::string& examples);

/// --output and the job, as above.
void AddJobAndOutput(CLI::App* verb, QueryOptions* options);

/// As above, and --master, for a verb that a master can answer by itself.
void AddTarget(CLI::App* verb, QueryOptions* options);

}  // namespace muster
