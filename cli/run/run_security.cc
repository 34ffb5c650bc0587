#include "cli/run/run_security.h"

#include <algorithm>

#include "base/address.h"
#include "base/status.h"
#include "job/in_cluster.h"
#include "job/security.h"
#include "security/certificate_authority.h"
#include "security/credentials.h"

namespace muster {
namespace {

/// The names in the scaler's certificate. Browsers and other REST clients check them.
std::vector<std::string> HostsOfRest(const JobSpec& spec) {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& host : {spec.scaler.host, spec.scaler.advertise}) {
    const std::string name = WithoutBrackets(host);
    if (name.empty() || IsWildcardHost(name)) continue;
    if (std::ranges::find(hosts, name) == hosts.end()) hosts.push_back(name);
  }
  return hosts;
}

absl::Status CheckGiven(const JobSpec& spec, const std::string& job_id, WallTime now) {
  const std::string& directory = spec.security.certificates;
  for (const Role role : GivenRoles(spec)) {
    const absl::Status usable =
        LoadCredentials(CredentialFilesOf(directory, role), {.job_id = job_id, .role = role}, now)
            .status();
    MUSTER_RETURN_IF_ERROR_PREPEND(usable, "spec.security.certificates");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FreshJobId(const JobSpec& spec, const std::string& drawn,
                                       WallTime now) {
  const std::string& directory = spec.security.certificates;
  if (directory.empty() || !UsesTls(spec)) return drawn;
  const absl::StatusOr<Credentials> master =
      LoadCredentials(CredentialFilesOf(directory, Role::kMaster), {"", Role::kMaster}, now);
  MUSTER_RETURN_IF_ERROR_PREPEND(master.status(), "spec.security.certificates");
  return master->identity.job_id;
}

std::vector<Role> GivenRoles(const JobSpec& spec) {
  if (spec.security.certificates == kInClusterCertificates) {
    return {Role::kMaster, Role::kScaler, Role::kOperator};
  }
  return {kRoles.begin(), kRoles.end()};
}

absl::StatusOr<std::string> PrepareCertificates(const JobSpec& spec, const StateDirectory& state,
                                                const std::string& job_id, WallTime now) {
  if (!UsesTls(spec)) return "";
  if (job_id.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the journal in {} cannot be read, so it is not known for which job "
                    "certificates are needed",
                    state.journal()));
  }
  const std::string& given = spec.security.certificates;
  if (!given.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckGiven(spec, job_id, now));
    return given;
  }
  MUSTER_RETURN_IF_ERROR(EnsureCertificates({.directory = state.certificates(),
                                             .job_id = job_id,
                                             .hosts = {{Role::kScaler, HostsOfRest(spec)}}},
                                            now)
                             .status());
  return state.certificates();
}

absl::Status CheckCertificatesGiven(const JobSpec& spec, const std::string& given) {
  if (!given.empty() || !UsesTls(spec)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the connections of this job are TLS, by spec.security and its addresses; name the folder of "
      "its certificates with --tls");
}

std::string SecurityWarning(const JobSpec& spec) {
  if (TransportOf(spec) != Transport::kPlainAndInsecure) return "";
  return "WARNING: spec.security.insecure is true, and an address of the job is not loopback. All "
         "connections are plain text: everybody on the network can read the weights and change the "
         "job. Remove the field to get TLS";
}

}  // namespace muster
