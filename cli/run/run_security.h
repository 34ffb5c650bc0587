#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/state/state_directory.h"
#include "job/job_spec.h"
#include "security/identity.h"

/// The certificates of a run of a job.
namespace muster {

/// The id of a new job. If the user has given certificates in spec.security.certificates and they
/// are used, it is their id, otherwise `drawn`. Errors: the user's files cannot be used.
absl::StatusOr<std::string> FreshJobId(const JobSpec& spec, const std::string& drawn, WallTime now);

/// The roles whose certificates are in the user's directory. These are all roles, but in the job's
/// own pod on Kubernetes there are no keys of workers and servers. Pure.
std::vector<Role> GivenRoles(const JobSpec& spec);

/// The directory with the certificates of all processes of the job; empty if connections are plain
/// text. It makes and renews the job's own certificates in the state directory, whose lock the
/// caller must hold. If the user has given certificates, it checks those. Errors: those of
/// LoadCredentials and EnsureCertificates.
absl::StatusOr<std::string> PrepareCertificates(const JobSpec& spec, const StateDirectory& state,
                                                const std::string& job_id, WallTime now);

/// Checks a process that was started with the directory of certificates `given` ("": none).
/// InvalidArgument if it has none and the job needs them. Without this check, a forgotten option
/// would mean plain text.
absl::Status CheckCertificatesGiven(const JobSpec& spec, const std::string& given);

/// The warning that `muster run` must show at every start; empty if there is none.
std::string SecurityWarning(const JobSpec& spec);

}  // namespace muster
