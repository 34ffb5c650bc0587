#include "cli/verify/node_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "scaler/launcher/pidfd.h"
#include "scaler/launcher/process_tree.h"

namespace muster::verify {
namespace {

/// Not by ReadFile: files of /proc have no size.
std::vector<std::string> CommandLine(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

std::optional<NodeProcess> ClassifyProcess(pid_t pid, const std::vector<std::string>& command_line,
                                           const NodePrograms& programs) {
  if (command_line.empty()) return std::nullopt;
  if (command_line[0] == programs.trainer) return NodeProcess{pid, Role::kWorker, ""};
  if (command_line[0] != programs.muster || command_line.size() < 2) return std::nullopt;
  if (command_line[1] == "master") return NodeProcess{pid, Role::kMaster, ""};
  if (command_line[1] == "scaler") return NodeProcess{pid, Role::kScaler, ""};
  if (command_line[1] != "ps") return std::nullopt;
  const auto flag = std::ranges::find(command_line, "--name");
  const bool named = flag != command_line.end() && std::next(flag) != command_line.end();
  return NodeProcess{pid, Role::kServer, named ? *std::next(flag) : ""};
}

std::vector<NodeProcess> FindNodes(const NodePrograms& programs) {
  std::vector<NodeProcess> nodes;
  for (const pid_t pid : Descendants({})) {
    auto node = ClassifyProcess(pid, CommandLine(pid), programs);
    if (node.has_value()) nodes.push_back(*std::move(node));
  }
  return nodes;
}

std::optional<HeldProcess> HeldProcess::Hold(const NodeProcess& node,
                                             const NodePrograms& programs) {
  const int fd = ::pidfd_open(node.pid, 0);
  if (fd < 0) return std::nullopt;
  HeldProcess held(node.pid, fd);
  // It may have ended, and the pid been given away, before it was held.
  const auto now = ClassifyProcess(node.pid, CommandLine(node.pid), programs);
  if (!now.has_value() || now->role != node.role || now->name != node.name) return std::nullopt;
  return held;
}

HeldProcess::HeldProcess(HeldProcess&& other) noexcept
    : pid_(other.pid_), fd_(std::exchange(other.fd_, -1)) {}

HeldProcess& HeldProcess::operator=(HeldProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  return *this;
}

HeldProcess::~HeldProcess() {
  if (fd_ >= 0) ::close(fd_);
}

bool HeldProcess::Send(int signal) const {
  return ::pidfd_send_signal(fd_, signal, nullptr, 0) == 0;
}

}  // namespace muster::verify
