#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

/// The names of `app`'s verbs that `muster --help` lists, in its order.
std::vector<std::string> ListedVerbs(const CLI::App& app);

/// Checks the first word of a command line. InvalidArgument when `app` has no such verb: the
/// message names the verb that was probably meant. Options ("--version") and no word at all are OK.
absl::Status CheckVerb(const CLI::App& app, const std::string& word);

/// The message for a line of the verb `word` that the parser refused for the reason `why`.
std::string UsageMessage(const std::string& word, const std::string& why);

}  // namespace muster
