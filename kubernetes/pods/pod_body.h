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

/// Whether a pod has the name of the node and the start that its labels name, and the label of the
/// job, of whichever run. Anybody can copy labels, but no two pods have one name.
bool IsNamedAsNode(const PodFacts& pod, const std::string& job);

/// What a container asks for that gets the limits `limits` and had `before`: the same share of each
/// limit, and all of it if it asked for nothing.
Resources RequestsFor(const Resources& limits, const Resources& requests_before,
                      const Resources& limits_before);

/// Changes the limits and the requests of a running pod, and of no other that has its name now; for
/// a strategic merge into its subresource "resize".
nlohmann::json ResizePatch(const std::string& uid, const std::string& container,
                           const Resources& limits, const Resources& requests);

/// Whether the Job of the run is there, by the `pods` with the label of the job. Its own pod, in
/// which the scaler runs, belongs to it as long as it is: when the Job is deleted without its pods,
/// Kubernetes takes the owner away from each.
bool IsJobThere(const PodRun& run, const std::vector<nlohmann::json>& pods);

}  // namespace muster::kubernetes
