#include "cli/ask/stacks_command.h"

#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "cli/show/output.h"
#include "cli/state/job_source.h"
#include "cli/state/state_directory.h"
#include "host/processes/node_stacks.h"
#include "proto/fields/json.h"
#include "proto/status/joined_node.h"

namespace muster {
namespace {

std::string NamesOf(const std::map<std::string, std::vector<pid_t>>& nodes) {
  std::vector<std::string> names;
  for (const auto& [name, pids] : nodes) names.push_back(name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// What to say if the node has no process on this machine.
std::string WhereElse(const StacksOptions& options,
                      const std::map<std::string, std::vector<pid_t>>& nodes) {
  const auto client = ConnectToMaster(options.query);
  const auto status = client.ok() ? (*client)->GetStatus() : client.status();
  for (const NodeStatus& node : status.ok() ? status->nodes : std::vector<NodeStatus>()) {
    if (node.name != options.node || !IsJoined(node)) continue;
    return fmt::format(
        "`muster join` runs {} on {}, where alone its stacks can be had: there, `kill -QUIT $(ps "
        "-o ppid= -p {})` writes them into its log, in `logs` of the folder --state-dir",
        node.name, node.host, node.pid);
  }
  return fmt::format("no process of node '{}' runs; nodes with a process: {}", options.node,
                     NamesOf(nodes));
}

}  // namespace

int StacksCommand(const StacksOptions& options) {
  const absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  const absl::StatusOr<Endpoint> endpoint = state->ReadEndpoint();
  if (!endpoint.ok()) return PrintError(SayWhereLooked(endpoint.status(), options.query.target));
  const auto nodes = ProcessesOfNodes(static_cast<pid_t>(endpoint->pid));
  const auto found = nodes.find(options.node);
  if (found == nodes.end()) {
    return PrintError(WhereElse(options, nodes), kExitUsage);
  }
  const bool text = options.query.output == OutputFormat::kText;
  nlohmann::json lines = nlohmann::json::array();
  bool refused = false;
  const absl::Status status = PrintStacksOf(
      found->second, std::chrono::seconds(options.timeout_s), [&](const std::string& line) {
        refused = refused || line.find(std::strerror(EPERM)) != std::string::npos;
        if (text) {
          PrintData(Printable(line) + "\n");
        } else {
          lines.push_back(ValidUtf8(line));
        }
      });
  if (!text) {
    const nlohmann::json document = {{"node", options.node},
                                     {"pids", found->second},
                                     {"complete", status.ok()},
                                     {"lines", std::move(lines)}};
    PrintData(JsonText(document, 2) + "\n");
  }
  if (refused) {
    PrintNote(
        "the kernel does not let this user look into the processes of the node: try it as root, or "
        "after `sysctl kernel.yama.ptrace_scope=0`");
  }
  return status.ok() ? kExitSucceeded : PrintError(Message(status), kExitFailed);
}

}  // namespace muster
