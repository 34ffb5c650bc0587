#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/verify/evidence.h"
#include "cli/verify/storm.h"

/// What `muster verify` tells; docs/cli.md documents it. Pure.
namespace muster::verify {

struct Report {
  uint64_t seed = 0;
  Workload workload;
  StormResult storm;
  std::optional<Judgement> judgement;  // none: the job did not come to its end
  std::string problem;                 // why there is no judgement
  std::string directory;               // of the job's folder, when it was kept
};

nlohmann::json ReportToJson(const Report& report);
std::string ReportText(const Report& report);

}  // namespace muster::verify
