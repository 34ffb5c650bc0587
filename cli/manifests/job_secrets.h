#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kubernetes/manifests/objects.h"

/// The secrets of a job on Kubernetes.
namespace muster {

/// Draws a token and a job's id, and makes the job's authority and a certificate for every role.
/// They are valid for a year, because nothing in the cluster renews them. The scaler's certificate
/// names the job's Service. `kept_id` is the id of a job that has state already; if empty, an id is
/// drawn. It works in a folder below the folder for temporary files, and removes it. Until then,
/// SIGINT, SIGTERM and SIGHUP wait in the calling thread. Thread-safe.
absl::StatusOr<kubernetes::JobSecrets> MakeJobSecrets(const std::string& job, const std::string& ns,
                                                      WallTime now,
                                                      const std::string& kept_id = "");

/// The same secrets, with new certificates if it is time at `now`. The token, the id, the authority
/// and all keys stay the same.
absl::StatusOr<kubernetes::JobSecrets> RenewJobSecrets(const kubernetes::JobSecrets& secrets,
                                                       const std::string& job,
                                                       const std::string& ns, WallTime now);

}  // namespace muster
