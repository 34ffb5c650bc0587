#include "kubernetes/pods/pod_body.h"

#include <fmt/format.h>

#include <algorithm>

#include <utility>

#include "base/status.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/pods/quantity.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

/// The object at `key`. It is created if there is none.
Json& ObjectIn(Json& parent, std::string_view key) {
  Json& child = parent[std::string(key)];
  if (!child.is_object()) child = Json::object();
  return child;
}

void SetVariable(const std::string& name, const std::string& value, Json* container) {
  Json& environment = (*container)["env"];
  if (!environment.is_array()) environment = Json::array();
  for (Json& variable : environment) {
    if (TextAt(variable, {"name"}) == name) {
      variable = {{"name", name}, {"value", value}};
      return;
    }
  }
  environment.push_back({{"name", name}, {"value", value}});
}

/// The request for a resource whose limit is now `limit`. Its ratio to the limit is the same as in
/// the template.
double RequestOf(double limit, double request_before, double limit_before) {
  if (request_before <= 0) return limit;
  if (limit_before <= 0) return std::min(request_before, limit);
  return std::min(limit, request_before / limit_before * limit);
}

void SetLimits(const Resources& limits, Json* container) {
  const Json values = ResourcesJson(limits);
  if (values.empty()) return;
  Json& resources = ObjectIn(*container, "resources");
  Json& wanted = ObjectIn(resources, "requests");
  Json& allowed = ObjectIn(resources, "limits");
  const Resources request = ReadResources(wanted);
  const Resources before = ReadResources(allowed);
  wanted.update(ResourcesJson(RequestsFor(limits, request, before)));
  allowed.update(values);
}

absl::Status CheckTemplate(const Json& pod_template, std::string_view role) {
  const Json& containers = ElementsAt(pod_template, {"spec", "containers"});
  if (!containers.empty() && containers.front().is_object()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the pod template of \"{}\" has no container in spec.containers", role));
}

}  // namespace

absl::StatusOr<PodTemplates> ParsePodTemplates(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const Json document, ParseJson(text));
  PodTemplates templates{.worker = ValueAt(document, {"worker"}),
                         .server = ValueAt(document, {"ps"})};
  MUSTER_RETURN_IF_ERROR(CheckTemplate(templates.worker, "worker"));
  MUSTER_RETURN_IF_ERROR(CheckTemplate(templates.server, "ps"));
  return templates;
}

bool IsNamedAsNode(const PodFacts& pod, const std::string& job) {
  return pod.job == job && !pod.run.empty() && !pod.node.empty() && pod.start != 0 &&
         pod.name == PodName({.job = job}, pod.node, pod.start);
}

bool IsJobThere(const PodRun& run, const std::vector<Json>& pods) {
  return std::ranges::any_of(pods, [&](const Json& pod) {
    return ReadPodFacts(pod).node.empty() && IsOwnedBy(pod, run.run);
  });
}

Resources RequestsFor(const Resources& limits, const Resources& requests_before,
                      const Resources& limits_before) {
  return {.cpus = RequestOf(limits.cpus, requests_before.cpus, limits_before.cpus),
          .memory_bytes =
              static_cast<uint64_t>(RequestOf(static_cast<double>(limits.memory_bytes),
                                              static_cast<double>(requests_before.memory_bytes),
                                              static_cast<double>(limits_before.memory_bytes)))};
}

std::string PodName(const PodRun& run, const std::string& node, uint32_t start) {
  return fmt::format("{}-{}-{}", run.job, node, start);
}

Selection PodsOf(const PodRun& run) {
  return {.labels = fmt::format("{}={},{}={}", kJobLabel, run.job, kRunLabel, run.run)};
}

Json PodBody(const PodRun& run, const PodTemplates& templates, const StartNode& start) {
  const bool worker = start.role == NodeRole::kWorker;
  Json pod = worker ? templates.worker : templates.server;
  pod["apiVersion"] = std::string(ApiVersionOf(Resource::kPods));
  pod["kind"] = std::string(KindOf(Resource::kPods));
  Json& metadata = ObjectIn(pod, "metadata");
  metadata["name"] = PodName(run, start.node, start.start);
  metadata["namespace"] = run.ns;
  metadata.erase("generateName");
  ObjectIn(metadata, "labels")
      .update({{"app.kubernetes.io/name", "muster"},
               {"app.kubernetes.io/instance", run.job},
               {std::string(kJobLabel), run.job},
               {std::string(kRunLabel), run.run},
               {std::string(kRoleLabel), std::string(ToString(start.role))},
               {std::string(kNodeLabel), start.node},
               {std::string(kStartLabel), std::to_string(start.start)}});
  // The Job owns these pods, so Kubernetes deletes them together with it. But it does not control
  // them, so it does not count them as its own pods.
  metadata["ownerReferences"] =
      Json::array({{{"apiVersion", std::string(ApiVersionOf(Resource::kJobs))},
                    {"kind", std::string(KindOf(Resource::kJobs))},
                    {"name", run.job},
                    {"uid", run.run},
                    {"controller", false},
                    {"blockOwnerDeletion", false}}});
  Json& spec = ObjectIn(pod, "spec");
  spec["restartPolicy"] = "Never";
  Json& container = spec["containers"][0];
  SetVariable("MUSTER_NODE", start.node, &container);
  SetVariable("MUSTER_START", std::to_string(start.start), &container);
  SetLimits(start.limits, &container);
  return pod;
}

Json ResizePatch(const std::string& uid, const std::string& container, const Resources& limits,
                 const Resources& requests) {
  return {{"metadata", {{"uid", uid}}},
          {"spec",
           {{"containers", Json::array({{{"name", container},
                                         {"resources",
                                          {{"requests", ResourcesJson(requests)},
                                           {"limits", ResourcesJson(limits)}}}}})}}}};
}

}  // namespace muster::kubernetes
