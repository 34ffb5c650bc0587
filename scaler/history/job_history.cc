#include "scaler/history/job_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "scaler/history/json_number.h"

namespace muster::scaler {
namespace {

using SummaryJson = nlohmann::json;

constexpr int kSummaryVersion = 1;
constexpr size_t kRunsKept = 20;
constexpr uint64_t kSummariesBytesMax = 4 << 20;
constexpr std::chrono::seconds kSaveInterval{60};
constexpr NodeRole kSummarizedRoles[] = {NodeRole::kServer, NodeRole::kWorker};

std::string SummariesPath(const std::string& folder) {
  return folder + "/runs.json";
}

SummaryJson SummaryToJson(const RunSummary& run) {
  SummaryJson roles = SummaryJson::object();
  for (const auto& [role, needs] : run.roles) {
    SummaryJson cpus = SummaryJson::array();
    for (const auto& [step, seconds] : needs.cpu_seconds) {
      cpus.push_back(SummaryJson::array({step, seconds}));
    }
    roles[ToString(role)] = {{"memory_peak_bytes", needs.memory_peak_bytes},
                             {"cpus_p95", needs.CpusP95()},
                             {"seconds_by_twentieths_of_a_core", std::move(cpus)}};
  }
  return {{"run", run.run_id},
          {"began_wall_us", run.began_wall_us},
          {"ended_wall_us", run.ended_wall_us},
          {"training_seconds", run.training_seconds},
          {"ended_well", run.ended_well},
          {"roles", std::move(roles)}};
}

RunSummary SummaryFromJson(const SummaryJson& json) {
  RunSummary run{.run_id = json.at("run").get<std::string>(),
                 .began_wall_us = WholeNumber<uint64_t>(json.at("began_wall_us")),
                 .ended_wall_us = WholeNumber<uint64_t>(json.at("ended_wall_us")),
                 .training_seconds = json.at("training_seconds").get<double>(),
                 .ended_well = json.at("ended_well").get<bool>()};
  for (const NodeRole role : kSummarizedRoles) {
    if (!json.at("roles").contains(ToString(role))) continue;
    const SummaryJson& from = json.at("roles").at(ToString(role));
    RoleNeeds& needs = run.roles[role];
    needs.memory_peak_bytes = WholeNumber<uint64_t>(from.at("memory_peak_bytes"));
    for (const SummaryJson& step : from.at("seconds_by_twentieths_of_a_core")) {
      needs.cpu_seconds[WholeNumber<uint32_t>(step.at(0))] = WholeNumber<uint64_t>(step.at(1));
    }
  }
  return run;
}

std::vector<RunSummary> SummariesOrNone(const std::string& folder) {
  absl::StatusOr<std::vector<RunSummary>> runs = ReadSummaries(folder);
  if (runs.ok()) return *std::move(runs);
  Log(LogLevel::kWarning, "what earlier runs needed is not known: {}", Message(runs.status()));
  return {};
}

/// Removes the summary of this run from `runs` and returns it, if an earlier scaler left one.
RunSummary TakeRun(const std::string& run_id, std::vector<RunSummary>* runs) {
  RunSummary taken{.run_id = run_id};
  const auto found =
      std::ranges::find_if(*runs, [&](const RunSummary& run) { return run.run_id == run_id; });
  if (found == runs->end()) return taken;
  taken = std::move(*found);
  runs->erase(found);
  return taken;
}

}  // namespace

absl::StatusOr<std::vector<RunSummary>> ReadSummaries(const std::string& folder) {
  const std::string path = SummariesPath(folder);
  const absl::StatusOr<std::string> text = ReadFile(path, kSummariesBytesMax);
  std::vector<RunSummary> runs;
  if (absl::IsNotFound(text.status())) return runs;
  MUSTER_RETURN_IF_ERROR(text.status());
  try {
    const SummaryJson json = SummaryJson::parse(*text);
    const int version = json.at("version").get<int>();
    if (version != kSummaryVersion) {
      return absl::DataLossError(
          fmt::format("{}: version {}, this program knows {}", path, version, kSummaryVersion));
    }
    for (const SummaryJson& run : json.at("runs")) runs.push_back(SummaryFromJson(run));
  } catch (const SummaryJson::exception& error) {
    return absl::DataLossError(fmt::format("{}: {}", path, error.what()));
  }
  return runs;
}

std::map<NodeRole, RoleHistory> JobHistory::Earlier(const std::string& folder,
                                                    const std::string& run_id) {
  std::vector<RunSummary> runs = SummariesOrNone(folder);
  std::erase_if(runs, [&](const RunSummary& run) { return run.run_id == run_id; });
  return LearnFrom(runs);
}

JobHistory::JobHistory(std::string folder, HistoryHead head)
    : folder_(std::move(folder)),
      before_(SummariesOrNone(folder_)),
      writer_(folder_, head),
      summarizer_(TakeRun(head.run_id, &before_)) {}

void JobHistory::Append(const JobView& view, WallTime wall) {
  writer_.Append(view, wall);
  summarizer_.Step(view, wall);
  if (view.now - saved_at_ < kSaveInterval) return;
  saved_at_ = view.now;
  Save();
}

void JobHistory::Finish(bool well) {
  if (well) summarizer_.SetEndedWell();
  Save();
}

void JobHistory::Save() {
  SummaryJson runs = SummaryJson::array();
  const size_t first = before_.size() - std::min(before_.size(), kRunsKept - 1);
  for (size_t i = first; i < before_.size(); ++i) runs.push_back(SummaryToJson(before_[i]));
  runs.push_back(SummaryToJson(summarizer_.summary()));
  const SummaryJson json = {{"version", kSummaryVersion}, {"runs", std::move(runs)}};
  absl::Status written = MakeDirectories(folder_);
  if (written.ok()) {
    written =
        WriteFileAtomically(SummariesPath(folder_),
                            json.dump(1, ' ', false, SummaryJson::error_handler_t::replace) + "\n");
  }
  if (!written.ok() && !failing_) {
    Log(LogLevel::kWarning, "what this run needs is not kept for the next: {}", Message(written));
  }
  failing_ = !written.ok();
}

}  // namespace muster::scaler
