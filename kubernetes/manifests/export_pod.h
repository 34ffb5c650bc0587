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
  /// The UID of the Job that owns the pod. If empty, nobody owns it.
  std::string owner_uid;
  /// The claim with the state directory. It is mounted read-only. If empty, the pod needs no state.
  std::string state_claim;
};

/// Makes the Pod from `pods_text` (pods.json in the job's ConfigMap). Its image, the secrets for
/// pulling it, machines and volumes are those of a server. kInvalidArgument if the text has no such
/// template.
absl::StatusOr<nlohmann::json> ExportPodBody(const ExportPod& pod, std::string_view pods_text);

/// The names of the claims that a pod mounts.
std::vector<std::string> ClaimsOf(const nlohmann::json& pod);

}  // namespace muster::kubernetes
