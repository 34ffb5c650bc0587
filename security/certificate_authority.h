#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "security/identity.h"

/// The certificates of one job. The process that starts the job makes them.
namespace muster {

struct CertificateOptions {
  /// The directory of ca.crt, ca.key and, for each role, ROLE.crt and ROLE.key. It is made with
  /// mode 0700, and keys with mode 0600.
  std::string directory;
  std::string job_id;
  /// The host names and addresses ("10.0.0.1") in a role's certificate, in addition to its
  /// identity.
  std::map<Role, std::vector<std::string>> hosts;
  std::chrono::hours authority_life{24 * 3650};
  std::chrono::hours certificate_life{24 * 90};
};

/// Makes missing files. It renews a certificate if it has expired, if at most a third of its life
/// is left, or if it lacks a host. A renewed certificate keeps its key. So key and certificate
/// belong together at every moment. Peers that know the old certificate of the authority accept
/// certificates that the renewed one signs. Every file is replaced in one step.
///
/// FailedPrecondition, with the file and what to do, if others may read a key, files belong to
/// another job, a key does not belong to its certificate, or an authority lacks its key.
///
/// Returns the names of new files. Empty if everything was in order. Only one process at a time may
/// call it for a directory.
absl::StatusOr<std::vector<std::string>> EnsureCertificates(const CertificateOptions& options,
                                                            WallTime now);

}  // namespace muster
