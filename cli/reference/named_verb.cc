#include "cli/reference/named_verb.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/nearest.h"

namespace muster {
namespace {

/// Verbs of kubectl, ray and other programs, each with the verb of Muster that does the same.
constexpr auto kVerbsOfOthers = std::to_array<std::pair<const char*, const char*>>({
    {"get", "nodes, shards, partitions or events"},
    {"describe", "status or explain"},
    {"delete", "cancel"},
    {"kill", "cancel or restart"},
    {"stop", "drain or cancel"},
    {"start", "run"},
    {"submit", "run"},
    {"launch", "run or train"},
    {"fit", "train"},
    {"resume", "run (it resumes a job) or policies resume"},
    {"watch", "top"},
    {"log", "logs"},
    {"relaunch", "restart"},
});

}  // namespace

std::vector<std::string> ListedVerbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

absl::Status CheckVerb(const CLI::App& app, const std::string& word) {
  if (word.empty() || word.starts_with('-')) return absl::OkStatus();
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == word) return absl::OkStatus();
  }
  std::string meant = Nearest(word, ListedVerbs(app));
  for (const auto& [other, ours] : kVerbsOfOthers) {
    if (word == other) meant = ours;
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a verb of muster.{} `muster help` lists the verbs", word,
                  meant.empty() ? "" : fmt::format(" Did you mean {}?", meant)));
}

std::string UsageMessage(const std::string& word, const std::string& why) {
  if (word.starts_with('-')) return fmt::format("{}. `muster help` shows how to use it", why);
  // The user probably wants to see the job's processes, as with `docker ps`.
  const char* const meant =
      word == "ps" ? " `muster ps` runs a parameter server; `muster nodes` lists a job's processes."
                   : "";
  return fmt::format("{}.{} `muster {} --help` shows how to use it", why, meant, word);
}

}  // namespace muster
