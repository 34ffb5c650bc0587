#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "host/messages.h"
#include "kubernetes/model/labels.h"
#include "kubernetes/model/resource.h"
#include "proto/messages/node_role.h"

/// What the pod of a node looks like. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The run whose nodes the pods are.
struct PodRun {
  /// The name of the Kubernetes Job, which owns the pods.
  std::string job;
  std::string ns;
  /// The UID of that Job: it identifies the run.
  std::string run;
};

/// A PodTemplateSpec for each role, complete but for what PodBody() adds.
struct PodTemplates {
  nlohmann::json worker;
  nlohmann::json server;
};

/// Reads {"worker": PodTemplateSpec, "ps": PodTemplateSpec}. kInvalidArgument: it is something
/// else, or a template has no container.
absl::StatusOr<PodTemplates> ParsePodTemplates(std::string_view text);

/// "flights-worker-0-3": decided before the pod is made, so that a repeated call cannot make a
/// second one.
std::string PodName(const PodRun& run, const std::string& node, uint32_t start);

/// The pods of the run.
Selection PodsOf(const PodRun& run);

/// The pod of a node: its template with name, labels and owner, never started again by its kubelet.
/// Its first container has MUSTER_NODE and MUSTER_START in its environment, and the limits of
/// `start` as its requests and its limits; what they do not limit stays as the template has it.
nlohmann::json PodBody(const PodRun& run, const PodTemplates& templates, const StartNode& start);

/// Changes the limits of a running pod, and of no other that has its name now; for a strategic
/// merge into its subresource "resize".
nlohmann::json ResizePatch(const std::string& uid, const std::string& container,
                           const Resources& limits);

}  // namespace muster::kubernetes
