#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cluster/cluster_access.h"
#include "kubernetes/manifests/export_pod.h"

/// The pod that makes an export where the volumes of a job are.
namespace muster::cluster {

/// True: its container runs; false: it will, perhaps. Otherwise why it never will: its image cannot
/// be had or has no `muster serve-export`, it has ended, or somebody deletes it. Pure.
absl::StatusOr<bool> HasBegun(const nlohmann::json& pod);
/// In plain words, what a pod that has not begun waits for. `events`: of the pod, in any order.
/// Pure.
std::string WaitsFor(const nlohmann::json& pod, const std::vector<nlohmann::json>& events);

/// kCancelled if `signal_fd` is readable within `length`.
absl::Status PauseUnlessSignal(int signal_fd, std::chrono::milliseconds length);

/// The pod of an export, which is deleted with this object. Not thread-safe.
class ExportPodOwner {
 public:
  /// Makes the pod; one of the same name that has ended is removed. Errors: kNotFound, if one of
  /// its claims is not there; kAlreadyExists, if another export of the job runs; those of Client.
  static absl::StatusOr<std::unique_ptr<ExportPodOwner>> Make(Cluster* cluster,
                                                              const kubernetes::ExportPod& pod,
                                                              const std::string& pods_text,
                                                              int signal_fd);
  ~ExportPodOwner();
  ExportPodOwner(const ExportPodOwner&) = delete;
  ExportPodOwner& operator=(const ExportPodOwner&) = delete;

  const std::string& name() const { return name_; }
  /// Says on stderr what it waits for, whenever that changes, for at most five minutes
  /// (kDeadlineExceeded, with the reason and what else one can do).
  absl::Status WaitUntilBegun();
  /// OK while it runs; otherwise how it ended.
  absl::Status CheckRuns();

 private:
  ExportPodOwner(Cluster* cluster, std::string name, std::string uid, int signal_fd);
  absl::StatusOr<nlohmann::json> Look();
  /// Empty, if the user may not see them.
  std::vector<nlohmann::json> Events();

  Cluster* const cluster_;
  const std::string name_;
  const std::string uid_;
  const int signal_fd_;
};

}  // namespace muster::cluster
