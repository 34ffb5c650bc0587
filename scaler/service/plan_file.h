#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scaler/nodes/plan.h"

namespace muster::scaler {

/// The plan as JSON, for `<state>/scaler/plan.json`.
std::string PlanToJson(const Plan& plan);
/// Errors: DataLoss says what is wrong if the text is not a plan.
absl::StatusOr<Plan> PlanFromJson(std::string_view text);

/// Errors name the path. NotFound if there is no plan yet.
absl::StatusOr<Plan> ReadPlan(const std::string& path);
/// The plan is durable when it returns. After a crash, the old plan or the new one is there,
/// complete.
absl::Status WritePlan(const std::string& path, const Plan& plan);

}  // namespace muster::scaler
