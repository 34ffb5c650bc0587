#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kubernetes/model/resource.h"

/// The rights of the pod of a job's master and scaler. This is the only place that lists them: the
/// pod's Role grants them, the pod asks for them when it begins, and the maker of the Role must
/// have them. Pure, thread-safe functions.
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

/// The rights that the job must have.
const std::vector<Right>& RightsOfJob();

/// The job can do without this right: then a node whose limits change is started again. Kubernetes'
/// own role `admin` lacks it.
inline constexpr Right kRightToResize{"patch", Resource::kPods, "resize"};

/// The texts of those of `rights` that are missing. Otherwise the first error of a question.
absl::StatusOr<std::vector<std::string>> MissingOf(
    const std::vector<Right>& rights, const std::function<absl::StatusOr<bool>(const Right&)>& may);

}  // namespace muster::kubernetes
