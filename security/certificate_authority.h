#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "security/identity.h"

/// The certificates of one job, made by the process that starts it.
namespace muster {

struct CertificateOptions {
  /// ca.crt, ca.key and, per role, ROLE.crt and ROLE.key. Made with mode 0700, its keys with 0600.
  std::string directory;
  std::string job_id;
  /// What a role's certificate says beside its identity: host names and addresses ("10.0.0.1").
  std::map<Role, std::vector<std::string>> hosts;
  std::chrono::hours authority_life{24 * 3650};
  std::chrono::hours certificate_life{24 * 90};
};

/// Makes what is missing, and renews certificates that have expired, of whose life at most a third
/// is left, or that lack a host. A renewed certificate keeps its key. So at every moment, key and
/// certificate belong together, and peers that know the old certificate of the authority accept
/// certificates that the renewed one signs. Every file is replaced in one step.
///
/// Refuses, with the file and what to do (FailedPrecondition): a key that others may read, files of
/// another job, a key that does not belong to its certificate, an authority without its key.
///
/// Returns the names of the files that are new; empty if everything was in order. Only one process
/// may run it for a directory.
absl::StatusOr<std::vector<std::string>> EnsureCertificates(const CertificateOptions& options,
                                                            WallTime now);

}  // namespace muster
