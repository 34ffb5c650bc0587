#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/state/job_target.h"
#include "kubernetes/client/client.h"
#include "kubernetes/config/credentials.h"

namespace muster::cluster {

/// Which job, and where.
struct JobPlace {
  std::string job;
  /// Empty: the context's.
  std::string ns;
};

/// The job of `target`: the name that the line gives, else that of the job file. The namespace is
/// the line's, else the job file's.
absl::StatusOr<JobPlace> PlaceOf(const JobTarget& target);

/// The API server of a verb, and the namespace. Thread-safe.
class Cluster {
 public:
  /// Reads the kubeconfig that `target` names; without any, in a pod, the pod's own access. Asks
  /// nothing yet. `ns` empty: the context's. Errors name the file.
  static absl::StatusOr<std::unique_ptr<Cluster>> Open(const ClusterTarget& target,
                                                       const std::string& ns);
  /// For tests: with this access.
  Cluster(kubernetes::ClusterAccess access, const std::string& ns);

  kubernetes::Client& client() { return client_; }
  kubernetes::CredentialSource* credentials() { return &credentials_; }
  const Clock& clock() const { return clock_; }
  const std::string& ns() const { return ns_; }
  /// "the namespace team of https://10.0.0.1:6443".
  std::string Where() const;

 private:
  const SystemClock clock_;
  kubernetes::CredentialSource credentials_;
  kubernetes::Client client_;
  const std::string ns_;
};

}  // namespace muster::cluster
