#include "master/service/callers.h"

#include "base/status.h"

namespace muster {
namespace {

std::string_view NameOf(MasterService service) {
  switch (service) {
    case MasterService::kWorkers:
      return "for workers";
    case MasterService::kServers:
      return "for parameter servers";
    case MasterService::kAdmin:
      return "for orders and questions";
  }
  return "";
}

}  // namespace

bool MayCall(Role role, MasterService service) {
  switch (service) {
    case MasterService::kWorkers:
      return role == Role::kWorker;
    case MasterService::kServers:
      return role == Role::kServer;
    case MasterService::kAdmin:
      return role == Role::kScaler || role == Role::kOperator;
  }
  return false;
}

absl::Status CheckJoiner(NodeRole joins, const AdminCall& call) {
  if (call.joiners && call.role.value_or(joins) == joins) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "the caller's token is scaler/join-{0} of the job's state directory, with which a "
      "machine can run a {0} of the job, and do nothing else",
      ToString(joins)));
}

absl::Status CheckRole(const Identity& caller, std::string_view job_id, MasterService service) {
  if (caller.job_id != job_id) {
    return absl::PermissionDeniedError(
        fmt::format("the caller's certificate is {}, but this job is {}; give the caller the files "
                    "of this job",
                    IdentityUri(caller), job_id));
  }
  if (MayCall(caller.role, service)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("the caller's certificate is {}, whose role {} may not use the master's service "
                  "{}; give the caller the files of its own role",
                  IdentityUri(caller), RoleWord(caller.role), NameOf(service)));
}

}  // namespace muster
