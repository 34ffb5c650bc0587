#include "tests/kubernetes/pods/model_cluster.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"

namespace muster::testing {
namespace {

using Json = nlohmann::json;
using kubernetes::IntegerAt;
using kubernetes::TextAt;

ModelCluster::Reply Failure(int code, const std::string& reason, const std::string& message) {
  return {code, {{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}};
}

ModelCluster::Reply NotThere(const std::string& name) {
  return Failure(404, "NotFound", fmt::format("pods \"{}\" not found", name));
}

Json& FirstContainerStatus(Json* pod) {
  Json& statuses = (*pod)["status"]["containerStatuses"];
  if (!statuses.is_array()) {
    statuses = Json::array({{{"name", (*pod)["spec"]["containers"][0]["name"]}}});
  }
  return statuses[0];
}

bool IsOver(const Json& pod) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  return phase == "Failed" || phase == "Succeeded";
}

}  // namespace

absl::Status StatusOf(const ModelCluster::Reply& reply) {
  if (reply.code < 300) return absl::OkStatus();
  return kubernetes::ToStatus(kubernetes::ReadApiError(reply.code, reply.body.dump(), ""));
}

ModelCluster::Reply ModelCluster::Create(Json pod) {
  const std::string name = TextAt(pod, {"metadata", "name"});
  if (forbidden) {
    return Failure(
        403, "Forbidden",
        "pods is forbidden: User \"muster\" cannot create resource \"pods\" in API group "
        "\"\" in the namespace \"team\"");
  }
  if (quota_used_up) {
    return Failure(403, "Forbidden",
                   fmt::format("pods \"{}\" is forbidden: exceeded quota: q, requested: pods=1, "
                               "used: pods=1, limited: pods=1",
                               name));
  }
  if (pods_.contains(name)) {
    return Failure(409, "AlreadyExists", fmt::format("pods \"{}\" already exists", name));
  }
  pod["metadata"]["uid"] = fmt::format("uid-{}", ++last_uid_);
  pod["status"] = {{"phase", "Pending"}};
  Json& stored = pods_[name] = std::move(pod);
  Tell("ADDED", &stored);
  return {201, stored};
}

ModelCluster::Reply ModelCluster::Get(const std::string& name) const {
  const auto pod = pods_.find(name);
  if (pod == pods_.end()) return NotThere(name);
  return {200, pod->second};
}

ModelCluster::Reply ModelCluster::Delete(const std::string& name, const Json& options) {
  const auto pod = pods_.find(name);
  if (pod == pods_.end()) return NotThere(name);
  const std::string uid = TextAt(options, {"preconditions", "uid"});
  if (!uid.empty() && uid != TextAt(pod->second, {"metadata", "uid"})) {
    return Failure(409, "Conflict", "the UID in the precondition does not match");
  }
  int64_t grace = IntegerAt(options, {"gracePeriodSeconds"}, 30);
  // The API server asks no machine about a pod that none has, or that has ended.
  if (IsOver(pod->second) || TextAt(pod->second, {"spec", "nodeName"}).empty()) grace = 0;
  if (grace == 0 && !held_.contains(name)) {
    const Reply last{200, pod->second};
    Remove(name);
    return last;
  }
  const int64_t before =
      IntegerAt(pod->second, {"metadata", "deletionGracePeriodSeconds"}, 1 << 20);
  if (grace < before) {
    pod->second["metadata"]["deletionTimestamp"] = "2026-11-26T14:12:03Z";
    pod->second["metadata"]["deletionGracePeriodSeconds"] = grace;
    Tell("MODIFIED", &pod->second);
  }
  return {200, pod->second};
}

ModelCluster::Reply ModelCluster::Resize(const std::string& name, const Json& patch) {
  const auto pod = pods_.find(name);
  if (pod == pods_.end()) return NotThere(name);
  if (TextAt(patch, {"metadata", "uid"}) != TextAt(pod->second, {"metadata", "uid"})) {
    return Failure(409, "Conflict", "the UID does not match");
  }
  pod->second["spec"]["containers"][0]["resources"].merge_patch(
      patch["spec"]["containers"][0]["resources"]);
  if (infeasible) {
    pod->second["status"]["conditions"].push_back({{"type", "PodResizePending"},
                                                   {"status", "True"},
                                                   {"reason", "Infeasible"},
                                                   {"message", "Node didn't have enough memory"}});
  }
  Tell("MODIFIED", &pod->second);
  return {200, pod->second};
}

void ModelCluster::Change(const std::string& name, const std::function<void(Json*)>& change) {
  Json& pod = pods_.at(name);
  change(&pod);
  Tell("MODIFIED", &pod);
}

void ModelCluster::Run(const std::string& name, const std::string& machine) {
  Change(name, [&](Json* pod) {
    (*pod)["spec"]["nodeName"] = machine;
    (*pod)["status"]["phase"] = "Running";
    FirstContainerStatus(pod)["state"] = {{"running", Json::object()}};
  });
}

void ModelCluster::End(const std::string& name, int code, const std::string& reason,
                       const std::string& message) {
  Change(name, [&](Json* pod) {
    (*pod)["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
    FirstContainerStatus(pod)["state"] = {
        {"terminated", {{"exitCode", code}, {"reason", reason}, {"message", message}}}};
  });
}

void ModelCluster::SayUnschedulable(const std::string& name, const std::string& message) {
  Change(name, [&](Json* pod) {
    (*pod)["status"]["conditions"] = Json::array({{{"type", "PodScheduled"},
                                                   {"status", "False"},
                                                   {"reason", "Unschedulable"},
                                                   {"message", message}}});
  });
}

void ModelCluster::SayWaiting(const std::string& name, const std::string& reason,
                              const std::string& message) {
  Change(name, [&](Json* pod) {
    (*pod)["spec"]["nodeName"] = "n1";
    FirstContainerStatus(pod)["state"] = {{"waiting", {{"reason", reason}, {"message", message}}}};
  });
}

void ModelCluster::Evict(const std::string& name) {
  Change(name, [&](Json* pod) {
    (*pod)["status"]["phase"] = "Failed";
    (*pod)["status"]["reason"] = "Evicted";
    (*pod)["status"]["message"] = "The node was low on resource: memory.";
    (*pod)["status"].erase("containerStatuses");
  });
}

void ModelCluster::Disrupt(const std::string& name, const std::string& reason) {
  Change(name, [&](Json* pod) {
    (*pod)["status"]["conditions"].push_back(
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}, {"message", "why"}});
    (*pod)["metadata"]["deletionTimestamp"] = "2026-11-26T14:12:03Z";
    (*pod)["metadata"]["deletionGracePeriodSeconds"] = 30;
  });
}

void ModelCluster::Lose(const std::string& name) {
  pods_.at(name)["status"]["conditions"].push_back(
      {{"type", "ContainersReady"}, {"status", "True"}});
  pods_.at(name)["status"]["conditions"].push_back({{"type", "Ready"}, {"status", "False"}});
  Disrupt(name, "DeletionByTaintManager");
}

void ModelCluster::Remove(const std::string& name) {
  Json pod = pods_.at(name);
  pods_.erase(name);
  held_.erase(name);
  Tell("DELETED", &pod);
}

void ModelCluster::Tell(const std::string& type, Json* pod) {
  (*pod)["metadata"]["resourceVersion"] = std::to_string(++version_);
  events_.push_back({{"type", type}, {"object", *pod}});
}

}  // namespace muster::testing
