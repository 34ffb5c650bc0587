#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubernetes/model/resource.h"

/// What the user of `muster run` and `muster export` must be allowed to do in a cluster.
namespace muster::cluster {

struct Right {
  const char* verb;
  kubernetes::Resource resource;
  const char* subresource = "";
};

/// To make and follow a job; and what the job's own pod must be allowed to do, because a Role gives
/// nothing that its maker lacks.
const std::vector<Right>& RightsToRun();

/// The job's pod can do without: Kubernetes' own role `admin` does not have it.
inline constexpr Right kRightToResize{"patch", kubernetes::Resource::kPods, "resize"};

/// To export from a volume of the cluster.
const std::vector<Right>& RightsToExport();

/// "create pods/portforward".
std::string TextOf(const Right& right);

/// PermissionDenied, with every one of `rights` that is missing in `ns`; or the first error of a
/// question. Pure, if `may` is.
absl::Status CheckRights(const std::string& ns, const std::vector<Right>& rights,
                         const std::function<absl::StatusOr<bool>(const Right&)>& may);

}  // namespace muster::cluster
