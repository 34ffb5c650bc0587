#include "kubernetes/manifests/export_pod.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "job/in_cluster.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"
#include "kubernetes/model/resource.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;

/// Usually the client deletes the pod. This limit is for clients that cannot.
constexpr std::chrono::seconds kLifeMax = std::chrono::hours(6);
/// The pod has nothing to finish when it is deleted.
constexpr int kGraceSeconds = 1;

struct Added {
  const char* name;
  std::string path;
  json source;
  bool read_only = true;
};

std::vector<Added> VolumesOf(const ExportPod& pod) {
  const std::string token = kInClusterTokenFile;
  std::vector<Added> added;
  added.push_back({.name = "muster-export",
                   .path = kInClusterExports,
                   .source = {{"emptyDir", json::object()}},
                   .read_only = false});
  added.push_back({.name = "muster-token",
                   .path = token.substr(0, token.rfind('/')),
                   .source = {{"secret",
                               {{"secretName", InClusterNames(pod.job).muster},
                                {"items", json::array({{{"key", "token"}, {"path", "token"}}})},
                                {"defaultMode", 0440}}}}});
  if (!pod.state_claim.empty()) {
    // Only the mount is read-only, and not the volume, because the claim may already be attached to
    // its machine.
    added.push_back({.name = "muster-state",
                     .path = kInClusterState,
                     .source = {{"persistentVolumeClaim", {{"claimName", pod.state_claim}}}}});
  }
  return added;
}

/// Adds small requests if the template has none, because many quotas refuse a pod without requests.
void AddRequests(json* container) {
  json& requests = (*container)["resources"]["requests"];
  if (!requests.is_object()) requests = json::object();
  for (const auto& [name, amount] : {std::pair("cpu", "100m"), std::pair("memory", "256Mi")}) {
    if (!requests.contains(name)) requests[name] = amount;
  }
}

/// The list at `key`. It is created if there is none.
json& ListIn(json& parent, const char* key) {
  json& list = parent[key];
  if (!list.is_array()) list = json::array();
  return list;
}

void AddVolumes(const ExportPod& pod, json* spec) {
  for (Added& added : VolumesOf(pod)) {
    json volume = std::move(added.source);
    volume["name"] = added.name;
    ListIn(*spec, "volumes").push_back(std::move(volume));
    json mount = {{"name", added.name}, {"mountPath", added.path}};
    if (added.read_only) mount["readOnly"] = true;
    ListIn((*spec)["containers"][0], "volumeMounts").push_back(std::move(mount));
  }
}

json MetadataOf(const ExportPod& pod, const json& in_template) {
  json metadata = in_template.is_object() ? in_template : json::object();
  metadata.erase("generateName");
  metadata["name"] = InClusterNames(pod.job).export_pod;
  json& labels = metadata["labels"];
  if (!labels.is_object()) labels = json::object();
  labels.update({{"app.kubernetes.io/name", "muster"},
                 {"app.kubernetes.io/instance", pod.job},
                 {kJobLabel, pod.job},
                 {kRoleLabel, kExportRole}});
  if (pod.owner_uid.empty()) return metadata;
  metadata["ownerReferences"] =
      json::array({{{"apiVersion", std::string(ApiVersionOf(Resource::kJobs))},
                    {"kind", std::string(KindOf(Resource::kJobs))},
                    {"name", pod.job},
                    {"uid", pod.owner_uid},
                    {"controller", false},
                    {"blockOwnerDeletion", false}}});
  return metadata;
}

}  // namespace

absl::StatusOr<json> ExportPodBody(const ExportPod& pod, std::string_view pods_text) {
  MUSTER_ASSIGN_OR_RETURN(const json templates, ParseJson(pods_text));
  json body = ValueAt(templates, {"ps"});
  const json& containers = ElementsAt(body, {"spec", "containers"});
  if (containers.empty() || !containers.front().is_object()) {
    return absl::InvalidArgumentError("there is no pod template of servers with a container");
  }
  body["apiVersion"] = std::string(ApiVersionOf(Resource::kPods));
  body["kind"] = std::string(KindOf(Resource::kPods));
  body["metadata"] = MetadataOf(pod, ValueAt(body, {"metadata"}));
  json& spec = body["spec"];
  spec["restartPolicy"] = "Never";
  spec["activeDeadlineSeconds"] = kLifeMax.count();
  spec["terminationGracePeriodSeconds"] = kGraceSeconds;
  json& container = spec["containers"][0];
  container["command"] = json::array({"muster", "serve-export"});
  container.erase("args");
  // If the container fails, the pod's status then contains its last output.
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  AddRequests(&container);
  AddVolumes(pod, &spec);
  return body;
}

std::vector<std::string> ClaimsOf(const json& pod) {
  std::vector<std::string> claims;
  for (const json& volume : ElementsAt(pod, {"spec", "volumes"})) {
    std::string claim = TextAt(volume, {"persistentVolumeClaim", "claimName"});
    if (!claim.empty() && std::ranges::find(claims, claim) == claims.end()) {
      claims.push_back(std::move(claim));
    }
  }
  return claims;
}

}  // namespace muster::kubernetes
