#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

/// The pod of `muster export`. Pure, thread-safe functions.
namespace muster::kubernetes {

struct ExportPod {
  std::string job;
  /// Of the Job, which then owns the pod; empty: nobody does.
  std::string owner_uid;
  /// With the state directory, which is mounted so that nothing in it can be changed; empty: the
  /// pod needs no state.
  std::string state_claim;
};

/// The Pod, made from `pods_text` (pods.json in the job's ConfigMap): image, secrets for pulling
/// it, machines and volumes are those of a server. kInvalidArgument: the text has no such template.
absl::StatusOr<nlohmann::json> ExportPodBody(const ExportPod& pod, std::string_view pods_text);

/// The names of the claims that a pod mounts.
std::vector<std::string> ClaimsOf(const nlohmann::json& pod);

}  // namespace muster::kubernetes
