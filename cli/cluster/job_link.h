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

/// A private folder that looks like the state directory of a job on Kubernetes, whose master and
/// scaler are reached over tunnels through the API server. When the job ends, the folder says that
/// no job runs. Not thread-safe.
class JobLink {
 public:
  using OnLook = std::function<void(const JobLook&)>;
  /// Requires: no other thread exists (PrivateFolder), and the Job is there. `look`: the newest.
  /// `on_look` is called in a thread after each later look that succeeded.
  static absl::StatusOr<std::unique_ptr<JobLink>> Open(Cluster* cluster, const std::string& job,
                                                       const JobLook& look, OnLook on_look = {});
  const StateDirectory& state() const { return state_; }
  JobWatch& watch() { return *watch_; }
  /// Why the job cannot be asked now, as far as that is known; OK: it is not known.
  absl::Status trouble() const;

 private:
  explicit JobLink(std::unique_ptr<PrivateFolder> folder);
  absl::Status Connect(Cluster* cluster, const std::string& job, const JobLook& look,
                       OnLook on_look);

  // In this order: tunnels ask the watch, and the watch writes into the folder.
  std::unique_ptr<PrivateFolder> folder_;
  const StateDirectory state_;
  std::unique_ptr<JobWatch> watch_;
  std::unique_ptr<kubernetes::Tunnel> master_;
  std::unique_ptr<kubernetes::Tunnel> rest_;
};

/// What a verb can do about a job that does not run yet.
enum class WhenPending { kSay, kGoOn };

/// Runs `verb` for a job on Kubernetes: `query` then names a private folder instead. Returns the
/// verb's exit code, or says why the job cannot be asked. Requires: no other thread exists.
int OverLink(QueryOptions* query, WhenPending when_pending, const std::function<int()>& verb);

/// As above, and then waits for Ctrl-C if the verb succeeded: what it has printed is an address of
/// the tunnel.
int OverLinkUntilSignal(QueryOptions* query, const std::function<int()>& verb);

}  // namespace muster::cluster
