#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "host/messages.h"
#include "kubernetes/model/labels.h"
#include "kubernetes/model/resource.h"
#include "kubernetes/pods/pod_facts.h"
#include "proto/messages/node_role.h"

/// The form of a node's pod. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The run to which the pods of nodes belong.
struct PodRun {
  /// The name of the Kubernetes Job, which owns the pods.
  std::string job;
  std::string ns;
  /// The UID of that Job. It identifies the run.
  std::string run;
};

/// A PodTemplateSpec for each role. It is complete except for what PodBody() adds.
struct PodTemplates {
  nlohmann::json worker;
  nlohmann::json server;
};

/// Parses {"worker": PodTemplateSpec, "ps": PodTemplateSpec}. kInvalidArgument if the text is
/// something else, or if a template has no container.
absl::StatusOr<PodTemplates> ParsePodTemplates(std::string_view text);

/// "flights-worker-0-3". The name is decided before the pod is made, so that a repeated call cannot
/// make a second pod.
std::string PodName(const PodRun& run, const std::string& node, uint32_t start);

/// The pods of the run.
Selection PodsOf(const PodRun& run);

/// The pod of a node: its template with name, labels and owner. The kubelet never restarts it. Its
/// first container has MUSTER_NODE and MUSTER_START in its environment, and the limits of `start`
/// as its requests and limits. Resources that `start` does not limit stay as in the template.
nlohmann::json PodBody(const PodRun& run, const PodTemplates& templates, const StartNode& start);

/// True if a pod has the name that belongs to the node and the start in its labels, and the label
/// of the job, of whichever run. Anybody can copy labels, but no two pods have one name.
bool IsNamedAsNode(const PodFacts& pod, const std::string& job);

/// The requests of a container that gets the limits `limits` and had `before`. They keep their
/// ratio to each limit. If a container requested nothing, the request becomes the limit.
Resources RequestsFor(const Resources& limits, const Resources& requests_before,
                      const Resources& limits_before);

/// Changes the limits and requests of a running pod, and of no other pod that has its name now. It
/// is a strategic merge patch for the subresource "resize".
nlohmann::json ResizePatch(const std::string& uid, const std::string& container,
                           const Resources& limits, const Resources& requests);

/// True if the Job of the run exists. `pods` are those with the label of the job. The Job's own
/// pod, in which the scaler runs, belongs to the Job as long as that exists. If the Job is deleted
/// without its pods, Kubernetes removes the owner from each pod.
bool IsJobThere(const PodRun& run, const std::vector<nlohmann::json>& pods);

}  // namespace muster::kubernetes
