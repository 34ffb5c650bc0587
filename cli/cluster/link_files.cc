#include "cli/cluster/link_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include "absl/strings/escaping.h"
#include "base/file.h"
#include "base/status.h"
#include "kubernetes/manifests/objects.h"
#include "kubernetes/model/json_access.h"
#include "security/credentials.h"
#include "security/identity.h"

namespace muster::cluster {
namespace {

absl::Status WriteSecret(const nlohmann::json& secret, const std::string& key,
                         const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string value, SecretValue(secret, key));
  return WriteFileAtomically(path, value, FileAccess::kOwnerOnly);
}

}  // namespace

absl::StatusOr<std::string> SecretValue(const nlohmann::json& secret, const std::string& key) {
  const std::string encoded = kubernetes::TextAt(secret, {"data", key});
  std::string value;
  if (encoded.empty() || !absl::Base64Unescape(encoded, &value)) {
    return absl::FailedPreconditionError(fmt::format("the Secret {} has no usable {}; {}",
                                                     kubernetes::IdentityOf(secret).name, key,
                                                     kubernetes::AdviceFor(secret)));
  }
  return value;
}

absl::Status WriteLinkFiles(const LinkedJob& linked, const StateDirectory& state) {
  MUSTER_RETURN_IF_ERROR(state.Create());
  MUSTER_RETURN_IF_ERROR(MakeDirectories(state.certificates()));
  MUSTER_RETURN_IF_ERROR(MakeDirectories(state.scaler()));
  const std::string role(RoleWord(Role::kOperator));
  const CredentialFiles files = CredentialFilesOf(state.certificates(), Role::kOperator);
  MUSTER_RETURN_IF_ERROR(WriteSecret(linked.secret, "ca.crt", files.ca));
  MUSTER_RETURN_IF_ERROR(WriteSecret(linked.secret, role + ".crt", files.certificate));
  MUSTER_RETURN_IF_ERROR(WriteSecret(linked.secret, role + ".key", files.key));
  MUSTER_RETURN_IF_ERROR(WriteSecret(linked.secret, "token", state.token()));
  MUSTER_ASSIGN_OR_RETURN(const std::string job_id, SecretValue(linked.secret, "job-id"));
  if (!linked.job_file.empty()) {
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(state.job_copy(), linked.job_file));
  }
  // What these files name lives as long as this process. The files of a run name what lives as long
  // as the run's process.
  MUSTER_RETURN_IF_ERROR(state.WriteRestAddress(
      {.port = linked.rest_port, .pid = ::getpid(), .certificates = state.certificates()}));
  return state.WriteEndpoint({.master = fmt::format("127.0.0.1:{}", linked.master_port),
                              .pid = ::getpid(),
                              .run_id = linked.run_id,
                              .job = {job_id, linked.job},
                              .certificates = state.certificates()});
}

}  // namespace muster::cluster
