#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/query_commands.h"

/// Options that many verbs have.
namespace muster {

/// --output text|json.
void AddOutput(CLI::App* verb, OutputFormat* output);

/// The node that a verb is about, before the job; a job file in its place is refused.
void AddNode(CLI::App* verb, std::string* node, const std::string& examples);

/// The job of a verb: its file, or --state-dir.
void AddJob(CLI::App* verb, QueryOptions* options);

/// As above, and --output.
void AddJobAndOutput(CLI::App* verb, QueryOptions* options);

/// As above, and --master, for a verb that a master can answer by itself.
void AddTarget(CLI::App* verb, QueryOptions* options);

}  // namespace muster
