#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubernetes/model/job_rights.h"

/// What the user of `muster run` and `muster export` must be allowed to do in a cluster.
namespace muster::cluster {

using kubernetes::Right;

/// To make and follow a job; and what the job's own pod must be allowed to do, because a Role gives
/// nothing that its maker lacks.
const std::vector<Right>& RightsToRun();

/// To export from a volume of the cluster.
const std::vector<Right>& RightsToExport();

/// PermissionDenied, with every one of `rights` that is missing in `ns`; or the first error of a
/// question. Pure, if `may` is.
absl::Status CheckRights(const std::string& ns, const std::vector<Right>& rights,
                         const std::function<absl::StatusOr<bool>(const Right&)>& may);

}  // namespace muster::cluster
