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

/// The pods of the job, of whichever run.
Selection PodsOfAllRuns(const PodRun& run);

/// Decides how the servers and workers of a job's earlier runs end before a new run begins: its
/// master takes them for dead. They outlive their Job if it was deleted without its pods, or is
/// deleted in the background. Pure; not thread-safe.
class FormerPods {
 public:
  /// How long a pod has to end.
  static constexpr std::chrono::seconds kGrace{30};
  /// After its grace, a pod that is still there is lost with its machine, and is not waited for.
  static constexpr std::chrono::seconds kConfirmMax{60};

  explicit FormerPods(PodRun run) : run_(std::move(run)) {}

  struct Step {
    /// To be deleted now, each only once, with kGrace.
    std::vector<ObjectIdentity> deletions;
    /// The names of those that may still run, new deletions too. Empty: the run can begin.
    std::vector<std::string> waits;
  };
  /// `pods` is the present list of PodsOfAllRuns. Only pods that are no younger than the job pod of
  /// `run` belong to earlier runs: a job pod that was left behind must not end its successors. So
  /// nothing is done if the list has no job pod of `run`.
  Step Look(const std::vector<nlohmann::json>& pods, TimePoint now);

 private:
  const PodRun run_;
  std::map<std::string, TimePoint> deleted_at_;  // by UID
};

}  // namespace muster::kubernetes
