#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cluster/cluster_access.h"
#include "kubernetes/manifests/export_pod.h"

/// The pod that makes an export. It runs in the cluster because the volumes of the job are there.
namespace muster::cluster {

/// True if the pod's container runs, and false if it may still start. The error says why it never
/// will: its image is not available or has no `muster serve-export`, it has ended, or somebody
/// deletes it. Pure.
absl::StatusOr<bool> HasBegun(const nlohmann::json& pod);
/// Says in plain words what a pod that has not begun waits for. `events` are those of the pod, in
/// any order. Pure.
std::string WaitsFor(const nlohmann::json& pod, const std::vector<nlohmann::json>& events);

/// Waits for `length`. Returns kCancelled if `signal_fd` becomes readable meanwhile.
absl::Status PauseUnlessSignal(int signal_fd, std::chrono::milliseconds length);

/// Owns the pod of an export, and deletes it in the destructor. Not thread-safe.
class ExportPodOwner {
 public:
  /// Makes the pod. If a pod of the same name has ended, it is removed first. Errors: kNotFound if
  /// a claim of the pod is missing; kAlreadyExists if another export of the job runs; those of
  /// Client.
  static absl::StatusOr<std::unique_ptr<ExportPodOwner>> Make(Cluster* cluster,
                                                              const kubernetes::ExportPod& pod,
                                                              const std::string& pods_text,
                                                              int signal_fd);
  ~ExportPodOwner();
  ExportPodOwner(const ExportPodOwner&) = delete;
  ExportPodOwner& operator=(const ExportPodOwner&) = delete;

  const std::string& name() const { return name_; }
  /// Waits for at most five minutes, and says on stderr what it waits for, whenever that changes.
  /// Errors: kDeadlineExceeded, with the reason and what the user can do instead.
  absl::Status WaitUntilBegun();
  /// OK while the pod runs. Otherwise the error says how it ended.
  absl::Status CheckRuns();

 private:
  ExportPodOwner(Cluster* cluster, std::string name, std::string uid, int signal_fd);
  absl::StatusOr<nlohmann::json> Look();
  /// The events of the pod. Empty if the user may not see them.
  std::vector<nlohmann::json> Events();

  Cluster* const cluster_;
  const std::string name_;
  const std::string uid_;
  const int signal_fd_;
};

}  // namespace muster::cluster
