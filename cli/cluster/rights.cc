#include "cli/cluster/rights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/status.h"

namespace muster::cluster {

using kubernetes::Resource;

const std::vector<Right>& RightsToRun() {
  static const std::vector<Right> rights = [] {
    std::vector<Right> all;
    for (const Resource made :
         {Resource::kServiceAccounts, Resource::kRoles, Resource::kRoleBindings,
          Resource::kConfigMaps, Resource::kPersistentVolumeClaims, Resource::kServices,
          Resource::kSecrets}) {
      all.push_back({"create", made});
      all.push_back({"patch", made});
    }
    all.push_back({"get", Resource::kSecrets});
    all.push_back({"get", Resource::kConfigMaps});
    for (const char* verb : {"get", "create", "delete"}) all.push_back({verb, Resource::kJobs});
    const std::vector<Right>& of_job = kubernetes::RightsOfJob();
    all.insert(all.end(), of_job.begin(), of_job.end());
    // A WebSocket begins as a GET. API servers from 1.35 on also ask for "create".
    all.push_back({"get", Resource::kPods, "portforward"});
    all.push_back({"create", Resource::kPods, "portforward"});
    return all;
  }();
  return rights;
}

const std::vector<Right>& RightsToExport() {
  static const std::vector<Right> rights = {{"get", Resource::kJobs},
                                            {"get", Resource::kSecrets},
                                            {"get", Resource::kConfigMaps},
                                            {"get", Resource::kPods},
                                            {"list", Resource::kPods},
                                            {"create", Resource::kPods},
                                            {"delete", Resource::kPods},
                                            {"get", Resource::kPods, "portforward"},
                                            {"create", Resource::kPods, "portforward"}};
  return rights;
}

absl::Status CheckRights(const std::string& ns, const std::vector<Right>& rights,
                         const std::function<absl::StatusOr<bool>(const Right&)>& may) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                          kubernetes::MissingOf(rights, may));
  if (missing.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("in the namespace {}, RBAC does not allow you: {}. Nothing was made. Ask for a "
                  "Role that has these, or choose another namespace with --namespace",
                  ns, fmt::join(missing, ", ")));
}

}  // namespace muster::cluster
