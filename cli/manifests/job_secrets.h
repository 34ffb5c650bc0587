#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kubernetes/manifests/objects.h"

/// The secrets of a job on Kubernetes.
namespace muster {

/// Draws a token and a job's id, and makes its authority and a certificate for every role. They
/// live for a year, because nothing in the cluster renews them. The scaler's certificate names the
/// job's Service. `kept_id`: of a job that has state already; empty: draws one. Works in a folder
/// of its own below the folder for temporary files, which it removes; until then, SIGINT, SIGTERM
/// and SIGHUP wait in the calling thread. Thread-safe.
absl::StatusOr<kubernetes::JobSecrets> MakeJobSecrets(const std::string& job, const std::string& ns,
                                                      WallTime now,
                                                      const std::string& kept_id = "");

/// The same secrets, with certificates renewed where `now` demands it; the token, the id, the
/// authority and all keys stay.
absl::StatusOr<kubernetes::JobSecrets> RenewJobSecrets(const kubernetes::JobSecrets& secrets,
                                                       const std::string& job,
                                                       const std::string& ns, WallTime now);

}  // namespace muster
