#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace muster {

/// The man pages of `app` and of each verb that `muster --help` lists, by their file names
/// ("muster.1", "muster-run.1"). They are made of what the parser knows, as --help is. The same
/// program makes the same bytes: there is no date in them.
std::map<std::string, std::string> ManPages(const CLI::App& app);

}  // namespace muster
