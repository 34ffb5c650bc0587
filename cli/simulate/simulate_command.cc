#include "cli/simulate/simulate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/nearest.h"
#include "base/status.h"
#include "cli/run/scaler_settings.h"
#include "cli/show/moment.h"
#include "cli/simulate/described_file.h"
#include "cli/simulate/simulate_output.h"
#include "job/file/load_job.h"
#include "job/file/scalars.h"
#include "job/thresholds.h"
#include "proto/fields/json.h"
#include "scaler/history/history_reader.h"

namespace muster::simulate {
namespace {

using scaler::HistoryReader;
using scaler::Simulation;
using scaler::SimulationOptions;

/// `given` is the folder of a history, or a state directory that has one.
std::string HistoryFolder(const std::string& given) {
  const std::string below = given + "/scaler/history";
  std::error_code ignored;
  return std::filesystem::is_directory(below, ignored) ? below : given;
}

/// Removes the events of policies that were not requested.
void KeepOnly(const std::vector<std::string>& policies, Simulation* simulation) {
  if (policies.empty()) return;
  const auto other = [&policies](const std::string& name) {
    return !name.empty() && std::ranges::find(policies, name) == policies.end();
  };
  std::erase_if(simulation->events, [&](const auto& event) { return other(event.policy); });
  std::erase_if(simulation->policies, [&](const auto& policy) { return other(policy.name); });
}

void Show(Simulation simulation, TimeShown times, const SimulateOptions& options) {
  KeepOnly(options.policies, &simulation);
  PrintData(options.output == OutputFormat::kJson
                ? JsonText(SimulationToJson(simulation, times)) + "\n"
                : SimulationText(simulation, times));
}

/// Reports the parts of a history that could not be read.
void NoteGaps(const HistoryReader& reader) {
  for (const std::string& file : reader.unread()) PrintNote("left out: " + file);
  if (reader.lines_skipped() == 0) return;
  PrintNote(fmt::format("{} lines could not be read and were left out; the first: {}",
                        reader.lines_skipped(), reader.first_skipped()));
}

absl::StatusOr<scaler::ReplaySpan> SpanOf(const SimulateOptions& options,
                                          const std::string& folder) {
  scaler::ReplaySpan span;
  if (options.from.empty() && options.to.empty()) return span;
  MUSTER_ASSIGN_OR_RETURN(HistoryReader reader, HistoryReader::Open(folder));
  const scaler::JobView* first = reader.Next();
  const WallTime begin = std::chrono::duration_cast<WallTime>(
      first == nullptr ? TimePoint::duration(0) : first->now.time_since_epoch());
  if (!options.from.empty()) {
    MUSTER_ASSIGN_OR_RETURN(span.from, ParseMoment(options.from, begin));
  }
  if (!options.to.empty()) {
    MUSTER_ASSIGN_OR_RETURN(span.to, ParseMoment(options.to, begin));
  }
  if (!options.from.empty() && !options.to.empty() && span.to <= span.from) {
    return absl::InvalidArgumentError(
        fmt::format("--to {} is not after --from {}", options.to, options.from));
  }
  return span;
}

absl::Status ReplayHistory(const SimulateOptions& options, const SimulationOptions& settings) {
  const std::string folder = HistoryFolder(options.history);
  MUSTER_ASSIGN_OR_RETURN(const scaler::ReplaySpan span, SpanOf(options, folder));
  MUSTER_ASSIGN_OR_RETURN(HistoryReader reader, HistoryReader::Open(folder));
  Simulation simulation = scaler::Replay(&reader, span, settings);
  NoteGaps(reader);
  if (simulation.steps == 0) {
    PrintNote("the history has nothing of that time");
    if (options.output == OutputFormat::kText) return absl::OkStatus();
  }
  Show(std::move(simulation), TimeShown::kWall, options);
  return absl::OkStatus();
}

absl::Status PlayDescribed(const SimulateOptions& options, const SimulationOptions& settings) {
  if (!options.from.empty() || !options.to.empty()) {
    return absl::InvalidArgumentError(
        "--from and --to are of a history; a described job has a "
        "duration");
  }
  absl::StatusOr<std::string> text = ReadFile(options.described, kDescribedBytesMax);
  // No running job can be away here, so an unreadable file is always a wrong argument.
  if (!text.ok()) return absl::InvalidArgumentError(fmt::format("{}", Message(text.status())));
  MUSTER_ASSIGN_OR_RETURN(const scaler::DescribedSpec spec,
                          ReadDescribed(*text, options.described));
  MUSTER_ASSIGN_OR_RETURN(Simulation simulation, scaler::Simulate(spec, settings));
  Show(std::move(simulation), TimeShown::kSinceBeginning, options);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WallTime> ParseMoment(std::string_view text, WallTime begin) {
  if (const auto after = job_file::ParseDuration(text); after.ok()) return begin + *after;
  if (const std::optional<WallTime> time = ParseWallTime(text)) return *time;
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no time: give a duration since the beginning (90s, 10m, 1h30m) or "
                  "2026-01-31T12:34:56Z",
                  text.substr(0, 60)));
}

absl::StatusOr<SimulationOptions> SimulationOptionsOf(const SimulateOptions& options) {
  SimulationOptions settings;
  if (!options.job_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(options.job_file, ""));
    settings.policies = PolicyOptionsOf(job.spec);
    settings.arbiter = ArbiterOptionsOf(job.spec);
    settings.paused = PausedPoliciesOf(job.spec);
  }
  if (options.dry_run) settings.arbiter.dry_run = true;
  if (options.policies.empty()) return settings;
  std::vector<std::string> names;
  for (const KnownPolicy& policy : KnownPolicies()) names.emplace_back(policy.name);
  for (const std::string& name : options.policies) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string near = Nearest(name, names);
    return absl::InvalidArgumentError(
        fmt::format("there is no policy '{}'; {}", name,
                    near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                 : fmt::format("did you mean {}?", near)));
  }
  for (const std::string& name : names) {
    const bool wanted = std::ranges::find(options.policies, name) != options.policies.end();
    wanted ? (void)settings.paused.erase(name) : (void)settings.paused.insert(name);
  }
  return settings;
}

int SimulateCommand(const SimulateOptions& options) {
  if (options.history.empty() == options.described.empty()) {
    return PrintError("give either --history DIR or --described FILE", kExitUsage);
  }
  const absl::StatusOr<SimulationOptions> settings = SimulationOptionsOf(options);
  if (!settings.ok()) return PrintError(settings.status());
  const absl::Status done = options.history.empty() ? PlayDescribed(options, *settings)
                                                    : ReplayHistory(options, *settings);
  return done.ok() ? kExitSucceeded : PrintError(done);
}

}  // namespace muster::simulate
