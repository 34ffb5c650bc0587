#include "cli/verify/node_processes.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "host/processes/process_tree.h"

namespace muster::verify {
namespace {

ProcessWords WordsOf(pid_t pid) {
  return {.command_line = CommandLineOf(pid), .environment = EnvironmentOf(pid)};
}

std::string Variable(const ProcessWords& words, std::string_view name) {
  for (const std::string& entry : words.environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

std::optional<Role> RoleOf(const std::vector<std::string>& command_line,
                           const NodePrograms& programs) {
  if (command_line.empty()) return std::nullopt;
  if (command_line[0] == programs.trainer) return Role::kWorker;
  if (command_line[0] != programs.muster || command_line.size() < 2) return std::nullopt;
  if (command_line[1] == "master") return Role::kMaster;
  if (command_line[1] == "scaler") return Role::kScaler;
  return command_line[1] == "ps" ? std::optional(Role::kServer) : std::nullopt;
}

std::string NameOf(Role role, const ProcessWords& words) {
  if (role == Role::kWorker) return Variable(words, "MUSTER_NODE");
  if (role != Role::kServer) return std::string(ToString(role));
  const auto flag = std::ranges::find(words.command_line, "--name");
  const bool named =
      flag != words.command_line.end() && std::next(flag) != words.command_line.end();
  return named ? *std::next(flag) : "";
}

}  // namespace

std::optional<NodeProcess> ClassifyProcess(pid_t pid, const ProcessWords& words,
                                           const NodePrograms& programs) {
  const std::optional<Role> role = RoleOf(words.command_line, programs);
  if (!role.has_value()) return std::nullopt;
  return NodeProcess{
      .pid = pid,
      .role = *role,
      .name = NameOf(*role, words),
      .start = StartNumber(std::strtoull(Variable(words, "MUSTER_START").c_str(), nullptr, 10))};
}

std::vector<NodeProcess> FindNodes(const NodePrograms& programs) {
  std::vector<NodeProcess> nodes;
  for (const pid_t pid : Descendants({})) {
    auto node = ClassifyProcess(pid, WordsOf(pid), programs);
    if (node.has_value()) nodes.push_back(*std::move(node));
  }
  return nodes;
}

std::optional<HeldProcess> HeldProcess::Hold(const NodeProcess& node,
                                             const NodePrograms& programs) {
  OwnedFd fd = OpenProcess(node.pid);
  if (fd.get() < 0) return std::nullopt;
  // It may have ended before the pidfd was opened, and the pid may have been reused.
  const auto now = ClassifyProcess(node.pid, WordsOf(node.pid), programs);
  if (now != node) return std::nullopt;
  return HeldProcess(node.pid, std::move(fd));
}

bool HeldProcess::Send(int signal) const {
  return SignalProcess(fd_, signal);
}

}  // namespace muster::verify
