#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/run/run_supervisor.h"
#include "proto/status/job_status.h"

namespace muster {

/// What is known at the end of a run.
struct SummaryInput {
  std::string job;
  RunOutcome outcome;
  std::optional<JobStatus> status;  // the last one; none if the master never answered
  uint32_t master_restarts = 0;
  uint32_t scaler_restarts = 0;
  uint32_t server_restarts = 0;
  uint32_t worker_restarts = 0;
  std::chrono::milliseconds elapsed{0};
  /// Training records done in this run, for the rate. Records of evaluation do not count.
  uint64_t trained_records = 0;
  /// From the first shard that was leased to the last one that was done.
  std::chrono::milliseconds training{0};
};

/// The contents of `<state>/summary.json`, which docs/cli.md describes. Pure.
nlohmann::json SummaryToJson(const SummaryInput& input);
/// The same as text for people.
std::string SummaryText(const SummaryInput& input);

}  // namespace muster
