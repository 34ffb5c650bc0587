#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kubernetes/model/resource.h"

/// What the pod of a job's master and scaler is allowed to do, said once: its Role gives that, the
/// pod asks for it when it begins, and who makes the Role must have it. Pure, thread-safe
/// functions.
namespace muster::kubernetes {

struct Right {
  const char* verb;
  Resource resource;
  const char* subresource = "";
};

/// "pods/portforward".
std::string ResourceTextOf(const Right& right);
/// "create pods/portforward".
std::string TextOf(const Right& right);

/// What the job cannot do without.
const std::vector<Right>& RightsOfJob();

/// It can do without: a node whose limits change is then started again. Kubernetes' own role
/// `admin` does not have it.
inline constexpr Right kRightToResize{"patch", Resource::kPods, "resize"};

/// The texts of those of `rights` that are missing; or the first error of a question.
absl::StatusOr<std::vector<std::string>> MissingOf(
    const std::vector<Right>& rights, const std::function<absl::StatusOr<bool>(const Right&)>& may);

}  // namespace muster::kubernetes
