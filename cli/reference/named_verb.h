#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

/// The names of `app`'s verbs that `muster --help` lists, in the same order.
std::vector<std::string> ListedVerbs(const CLI::App& app);

/// Checks the first word of a command line. InvalidArgument if `app` has no such verb; the message
/// names the verb that was probably meant. An option ("--version") or no word at all is OK.
absl::Status CheckVerb(const CLI::App& app, const std::string& word);

/// The message if the parser refuses a command line of the verb `word`, with its reason `why`.
std::string UsageMessage(const std::string& word, const std::string& why);

}  // namespace muster
