#include "scaler/service/plan_file.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"

namespace muster::scaler {
namespace {

constexpr uint64_t kBytesMax = 16 << 20;
constexpr std::pair<NodePlan::State, const char*> kStates[] = {
    {NodePlan::State::kIdle, "idle"},
    {NodePlan::State::kRunning, "running"},
    {NodePlan::State::kFinished, "finished"}};
constexpr std::pair<NodePlan::Ending, const char*> kEndings[] = {
    {NodePlan::Ending::kNone, "none"},
    {NodePlan::Ending::kRestart, "restart"},
    {NodePlan::Ending::kDrain, "drain"},
    // Plans of version 0.1 have this word. We never write it.
    {NodePlan::Ending::kRestart, "relaunch"}};

absl::Status Bad(std::string_view what, const std::string& value) {
  return absl::DataLossError(fmt::format("{}: '{}' is not known", what, value.substr(0, 64)));
}

/// The value in `names` whose name is in `json`.
template <typename Value, size_t kCount>
absl::Status TakeName(const nlohmann::json& json, std::string_view what,
                      const std::pair<Value, const char*> (&names)[kCount], Value* value) {
  const std::string text = json.get<std::string>();
  for (const auto& [candidate, name] : names) {
    if (name != text) continue;
    *value = candidate;
    return absl::OkStatus();
  }
  return Bad(what, text);
}

nlohmann::json ToJson(const Resources& limits) {
  return {{"cpus", limits.cpus}, {"memory_bytes", limits.memory_bytes}};
}

absl::Status TakeLimits(const nlohmann::json& json, Resources* limits) {
  limits->cpus = json.at("cpus").get<double>();
  limits->memory_bytes = json.at("memory_bytes").get<uint64_t>();
  if (limits->cpus >= 0) return absl::OkStatus();
  return Bad("cpus", json.at("cpus").dump());
}

absl::StatusOr<NodePlan> NodeFromJson(const nlohmann::json& json) {
  NodePlan node{.starts = json.at("starts").get<uint32_t>(),
                .exits = json.at("exits").get<uint32_t>(),
                .leaves = json.value("leaves", uint32_t{0}),
                .pid = json.at("pid").get<uint64_t>()};
  const std::string role_name = json.at("role").get<std::string>();
  const bool known = FromWord(role_name, &node.role);
  if (!known || (node.role != NodeRole::kServer && node.role != NodeRole::kWorker)) {
    return Bad("role", role_name);
  }
  MUSTER_RETURN_IF_ERROR(TakeName(json.at("state"), "state", kStates, &node.state));
  // Plans of older scalers lack some members. Those keep the values of a new node.
  if (json.contains("limits")) MUSTER_RETURN_IF_ERROR(TakeLimits(json.at("limits"), &node.limits));
  if (json.contains("former_limits")) {
    MUSTER_RETURN_IF_ERROR(TakeLimits(json.at("former_limits"), &node.former_limits.emplace()));
  }
  if (json.contains("placed_limits")) {
    MUSTER_RETURN_IF_ERROR(TakeLimits(json.at("placed_limits"), &node.placed_limits.emplace()));
  }
  if (json.contains("ending")) {
    MUSTER_RETURN_IF_ERROR(TakeName(json.at("ending"), "ending", kEndings, &node.ending));
  }
  return node;
}

}  // namespace

std::string PlanToJson(const Plan& plan) {
  nlohmann::json nodes = nlohmann::json::object();
  for (const auto& [name, node] : plan.nodes) {
    nodes[name] = {{"role", ToString(node.role)},
                   {"state", kStates[static_cast<size_t>(node.state)].second},
                   {"starts", node.starts},
                   {"exits", node.exits},
                   {"leaves", node.leaves},
                   {"pid", node.pid},
                   {"limits", ToJson(node.limits)},
                   {"ending", kEndings[static_cast<size_t>(node.ending)].second}};
    if (node.former_limits.has_value()) nodes[name]["former_limits"] = ToJson(*node.former_limits);
    if (node.placed_limits.has_value()) nodes[name]["placed_limits"] = ToJson(*node.placed_limits);
  }
  nlohmann::json json = {{"run_id", plan.run_id},
                         {"began_wall_us", plan.began_wall_us},
                         {"workers", plan.workers},
                         {"nodes", std::move(nodes)},
                         {"paused", plan.paused}};
  if (plan.failure.has_value()) json["failure"] = *plan.failure;
  // A failure quotes the last output of a node, which may not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Plan> PlanFromJson(std::string_view text) {
  // Reading a member throws if it is missing or has another type.
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Plan plan{.run_id = json.at("run_id").get<std::string>(),
              .began_wall_us = json.value("began_wall_us", uint64_t{0}),
              .workers = json.at("workers").get<uint32_t>(),
              .nodes = {}};
    for (const auto& [name, value] : json.at("nodes").items()) {
      absl::StatusOr<NodePlan> node = NodeFromJson(value);
      if (!node.ok()) return Annotate(node.status(), name);
      plan.nodes.emplace(name, *node);
    }
    if (json.contains("paused")) plan.paused = json.at("paused").get<std::set<std::string>>();
    if (json.contains("failure")) plan.failure = json.at("failure").get<std::string>();
    return plan;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(fmt::format("not a plan: {}", error.what()));
  }
}

absl::StatusOr<Plan> ReadPlan(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kBytesMax));
  absl::StatusOr<Plan> plan = PlanFromJson(text);
  if (!plan.ok()) return Annotate(plan.status(), path);
  return plan;
}

absl::Status WritePlan(const std::string& path, const Plan& plan) {
  MUSTER_FAILPOINT_OR_RETURN("plan.before-write");
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(path, PlanToJson(plan)));
  MUSTER_FAILPOINT("plan.after-write");
  return absl::OkStatus();
}

}  // namespace muster::scaler
