#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/verify/evidence.h"
#include "cli/verify/storm.h"

/// The report of `muster verify`. docs/cli.md describes it. Pure.
namespace muster::verify {

struct Report {
  uint64_t seed = 0;
  Workload workload;
  StormResult storm;
  std::optional<Judgement> judgement;  // none if the job did not reach its end
  std::string problem;                 // why there is no judgement
  std::string directory;               // the job's folder, if it was kept
};

nlohmann::json ReportToJson(const Report& report);
std::string ReportText(const Report& report);

}  // namespace muster::verify
