#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scaler/nodes/plan.h"

namespace muster::scaler {

/// `<state>/scaler/plan.json`: the plan as JSON.
std::string PlanToJson(const Plan& plan);
/// DataLoss when it is no plan; says what is wrong.
absl::StatusOr<Plan> PlanFromJson(std::string_view text);

/// NotFound when there is none yet. Errors name the path.
absl::StatusOr<Plan> ReadPlan(const std::string& path);
/// Durable when it returns; after a crash the old plan or the new one is there, whole.
absl::Status WritePlan(const std::string& path, const Plan& plan);

}  // namespace muster::scaler
