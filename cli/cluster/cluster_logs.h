#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/ask/logs_command.h"

namespace muster::cluster {

/// A pod whose log is the log of a node or a part of it.
struct LoggedPod {
  std::string node;  // "master": the pod of master and scaler
  std::string pod;
  friend bool operator==(const LoggedPod&, const LoggedPod&) = default;
};

/// The pods of these nodes (none: of all nodes), ordered by node and then by age. Pods without a
/// container have no log yet and are left out. Pure.
std::vector<LoggedPod> LoggedPods(const std::vector<nlohmann::json>& pods,
                                  const std::vector<std::string>& nodes);

/// `muster logs` of a job on Kubernetes. It shows what the job's containers write, and works as
/// long as the pods exist. Returns the exit code.
int LogsOnCluster(const LogsOptions& options);

}  // namespace muster::cluster
