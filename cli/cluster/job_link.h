#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_watch.h"
#include "cli/cluster/private_folder.h"
#include "cli/state/job_source.h"
#include "kubernetes/client/tunnel.h"

namespace muster::cluster {

/// A private folder that looks like the state directory of a job on Kubernetes. Tunnels through the
/// API server lead to the job's master and scaler. When the job ends, the folder says that no job
/// runs. Not thread-safe.
class JobLink {
 public:
  using OnLook = std::function<void(const JobLook&)>;
  /// Requires: no other thread exists (PrivateFolder), and the Job exists. `look` is the newest
  /// look. After each later look that succeeded, a thread calls `on_look`.
  static absl::StatusOr<std::unique_ptr<JobLink>> Open(Cluster* cluster, const std::string& job,
                                                       const JobLook& look, OnLook on_look = {});
  const StateDirectory& state() const { return state_; }
  JobWatch& watch() { return *watch_; }
  /// Why the job cannot be asked now. OK if no reason is known.
  absl::Status trouble() const;

 private:
  explicit JobLink(std::unique_ptr<PrivateFolder> folder);
  absl::Status Connect(Cluster* cluster, const std::string& job, const JobLook& look,
                       OnLook on_look);

  // The order matters: tunnels use the watch, and the watch writes into the folder.
  std::unique_ptr<PrivateFolder> folder_;
  const StateDirectory state_;
  std::unique_ptr<JobWatch> watch_;
  std::unique_ptr<kubernetes::Tunnel> master_;
  std::unique_ptr<kubernetes::Tunnel> rest_;
};

/// What a verb does if the job does not run yet: it says so, or it continues.
enum class WhenPending { kSay, kGoOn };

/// Runs `verb` for a job on Kubernetes, with a private folder in `query`. Returns the verb's exit
/// code. If the job cannot be asked, it says why. Requires: no other thread exists.
int OverLink(QueryOptions* query, WhenPending when_pending, const std::function<int()>& verb);

/// The same, but if the verb succeeded, it then waits for Ctrl-C, because the verb has printed an
/// address of the tunnel.
int OverLinkUntilSignal(QueryOptions* query, const std::function<int()>& verb);

}  // namespace muster::cluster
