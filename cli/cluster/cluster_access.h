#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/state/job_target.h"
#include "kubernetes/client/client.h"
#include "kubernetes/config/credentials.h"

namespace muster::cluster {

/// The name of a job and its namespace.
struct JobPlace {
  std::string job;
  /// If empty, the namespace of the kubeconfig's context.
  std::string ns;
};

/// The job of `target`. The command line names it, or else the job file. The same is true of the
/// namespace.
absl::StatusOr<JobPlace> PlaceOf(const JobTarget& target);

/// The API server that a verb talks to, and the namespace. Thread-safe.
class Cluster {
 public:
  /// Reads the kubeconfig that `target` names. In a pod without a kubeconfig, it takes the pod's
  /// own access. It asks the API server nothing yet. If `ns` is empty, the context's namespace is
  /// used. Errors name the file.
  static absl::StatusOr<std::unique_ptr<Cluster>> Open(const ClusterTarget& target,
                                                       const std::string& ns);
  /// For tests, which give their own access.
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
