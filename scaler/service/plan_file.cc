#include "scaler/service/plan_file.h"

#include <nlohmann/json.hpp>
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
constexpr NodeRole kRoles[] = {NodeRole::kServer, NodeRole::kWorker};

absl::Status Bad(std::string_view what, const std::string& value) {
  return absl::DataLossError(fmt::format("{}: '{}' is not known", what, value.substr(0, 64)));
}

absl::StatusOr<NodePlan> NodeFromJson(const nlohmann::json& json) {
  NodePlan node{.starts = json.at("starts").get<uint32_t>(),
                .exits = json.at("exits").get<uint32_t>(),
                .pid = json.at("pid").get<uint64_t>()};
  const std::string role_name = json.at("role").get<std::string>();
  bool known = false;
  for (const NodeRole role : kRoles) {
    if (ToString(role) != role_name) continue;
    node.role = role;
    known = true;
  }
  if (!known) return Bad("role", role_name);
  const std::string state_name = json.at("state").get<std::string>();
  for (const auto& [state, name] : kStates) {
    if (name != state_name) continue;
    node.state = state;
    return node;
  }
  return Bad("state", state_name);
}

}  // namespace

std::string PlanToJson(const Plan& plan) {
  nlohmann::json nodes = nlohmann::json::object();
  for (const auto& [name, node] : plan.nodes) {
    nodes[name] = {{"role", ToString(node.role)},
                   {"state", kStates[static_cast<size_t>(node.state)].second},
                   {"starts", node.starts},
                   {"exits", node.exits},
                   {"pid", node.pid}};
  }
  const nlohmann::json json = {
      {"run_id", plan.run_id}, {"workers", plan.workers}, {"nodes", std::move(nodes)}};
  return json.dump(2) + "\n";
}

absl::StatusOr<Plan> PlanFromJson(std::string_view text) {
  // Reading what is not there, or is of another type, throws.
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Plan plan{.run_id = json.at("run_id").get<std::string>(),
              .workers = json.at("workers").get<uint32_t>(),
              .nodes = {}};
    for (const auto& [name, value] : json.at("nodes").items()) {
      absl::StatusOr<NodePlan> node = NodeFromJson(value);
      if (!node.ok()) return Annotate(node.status(), name);
      plan.nodes.emplace(name, *node);
    }
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
