#include "master/journal/journal.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

namespace muster {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// One line per field that differs; the two names of the sides follow each value.
std::string Differences(const Fields& journal, const Fields& job, std::string_view journal_side,
                        std::string_view job_side) {
  std::string text;
  std::map<std::string, std::string> before(journal.begin(), journal.end());
  const auto add = [&](const std::string& name, std::string_view was, std::string_view is) {
    text += fmt::format("\n  {}: '{}' {}, '{}' {}", name, was, journal_side, is, job_side);
  };
  for (const auto& [name, value] : job) {
    const auto it = before.find(name);
    if (it == before.end()) {
      add(name, "(absent)", value);
    } else if (it->second != value) {
      add(name, it->second, value);
    }
    if (it != before.end()) before.erase(it);
  }
  for (const auto& [name, value] : before) add(name, value, "(absent)");
  return text;
}

}  // namespace

absl::Status CheckHeader(const JournalHeader& journal, const JournalHeader& job,
                         const std::string& directory) {
  Fields was{{"metadata.name", journal.job}}, is{{"metadata.name", job.job}};
  was.insert(was.end(), journal.fixed_fields.begin(), journal.fixed_fields.end());
  is.insert(is.end(), job.fixed_fields.begin(), job.fixed_fields.end());
  const std::string fields = Differences(was, is, "in the state directory", "in the job file");
  if (!fields.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "{} belongs to another job, or the job file changes fields that may not change on resume:"
        "{}\nGive the job another spec.stateDirectory, or restore these fields",
        directory, fields));
  }
  const std::string sources =
      Differences(journal.sources, job.sources, "when the job began", "now");
  if (!sources.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the data have changed since {} began (fingerprints by dataset):{}\n"
                    "Put the original files back, or give the job another spec.stateDirectory to "
                    "begin again",
                    directory, sources));
  }
  return absl::OkStatus();
}

}  // namespace muster
