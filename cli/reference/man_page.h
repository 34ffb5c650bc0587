#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace muster {

/// The man pages of `app` and of each verb that `muster --help` lists, by their file names
/// ("muster.1", "muster-run.1"). They are generated from the parser, as --help is. They contain no
/// date, so the same program always makes the same bytes.
std::map<std::string, std::string> ManPages(const CLI::App& app);

/// A meaning of an option, with the verbs in which the option has it.
struct FlagMeaning {
  std::string meaning;
  std::vector<std::string> verbs;  // "run", "policies pause"
};

/// An option, such as "-n, --last N", with its meanings in the order of the verbs.
struct ListedFlag {
  std::string flag;
  std::vector<FlagMeaning> meanings;
};

/// Every option of `app` and of the verbs that `muster --help` lists, by name. It is generated from
/// the parser, as --help is. Arguments without a dash are left out.
std::vector<ListedFlag> FlagsOf(const CLI::App& app);

/// The list as text for people, at most 100 columns wide.
std::string FlagsText(const std::vector<ListedFlag>& flags);

}  // namespace muster
