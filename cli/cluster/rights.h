#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubernetes/model/job_rights.h"

/// The rights in a cluster that the user of `muster run` and `muster export` needs.
namespace muster::cluster {

using kubernetes::Right;

/// The rights to make and follow a job. They include the rights of the job's own pod, because
/// nobody can give a Role rights that they lack.
const std::vector<Right>& RightsToRun();

/// The rights to export from a volume of the cluster.
const std::vector<Right>& RightsToExport();

/// Errors: PermissionDenied names each of `rights` that is missing in `ns`; or the first error of a
/// question. Pure if `may` is.
absl::Status CheckRights(const std::string& ns, const std::vector<Right>& rights,
                         const std::function<absl::StatusOr<bool>(const Right&)>& may);

}  // namespace muster::cluster
