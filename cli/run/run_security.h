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

/// The id of a job that begins: that of spec.security.certificates if the user gave them and they
/// are used, otherwise `drawn`. Errors: the user's files cannot be used.
absl::StatusOr<std::string> FreshJobId(const JobSpec& spec, const std::string& drawn, WallTime now);

/// The roles whose certificates are in the user's directory: all, but the job's own pod on
/// Kubernetes has no keys of workers and servers. Pure.
std::vector<Role> GivenRoles(const JobSpec& spec);

/// The directory of the certificates of all processes of the job; empty if connections are plain
/// text. Makes and renews the job's own in the state directory, whose lock the caller has; checks
/// the user's. Errors: LoadCredentials, EnsureCertificates.
absl::StatusOr<std::string> PrepareCertificates(const JobSpec& spec, const StateDirectory& state,
                                                const std::string& job_id, WallTime now);

/// For a process that was started with the directory of certificates `given` ("": none):
/// InvalidArgument if the job needs them. Without this, a forgotten option would mean plain text.
absl::Status CheckCertificatesGiven(const JobSpec& spec, const std::string& given);

/// What `muster run` must say at every start; empty if there is nothing to say.
std::string SecurityWarning(const JobSpec& spec);

}  // namespace muster
