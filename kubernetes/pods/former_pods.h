#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/resource.h"
#include "kubernetes/pods/pod_body.h"

namespace muster::kubernetes {

/// The pods of all runs of the job.
Selection PodsOfAllRuns(const PodRun& run);

/// Ends the servers and workers of a job's earlier runs before a new run begins, because the master
/// of the new run counts them as dead. They outlive their Job if it was deleted without its pods,
/// or is being deleted in the background. Pure; not thread-safe.
class FormerPods {
 public:
  /// How long a pod may take to end.
  static constexpr std::chrono::seconds kGrace{30};
  /// If a pod is still there this long after its grace period, it is lost with its machine, and
  /// nobody waits for it.
  static constexpr std::chrono::seconds kConfirmMax{60};

  explicit FormerPods(PodRun run) : run_(std::move(run)) {}

  struct Step {
    /// Pods to delete now, with kGrace. Each is returned only once.
    std::vector<ObjectIdentity> deletions;
    /// The names of pods that may still run; those that are to be deleted are among them. If empty,
    /// the run can begin.
    std::vector<std::string> waits;
  };
  /// `pods` is the present list of PodsOfAllRuns. Only pods that are not younger than the job pod
  /// of `run` belong to earlier runs, because a job pod that was left behind must not end the pods
  /// of later runs. So if the list has no job pod of `run`, nothing is done.
  Step Look(const std::vector<nlohmann::json>& pods, TimePoint now);

 private:
  const PodRun run_;
  std::map<std::string, TimePoint> deleted_at_;  // by UID
};

}  // namespace muster::kubernetes
