#include "scaler/launcher/process_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "scaler/launcher/pidfd.h"
#include "scaler/launcher/process_tree.h"
#include "scaler/launcher/spawn.h"
#include "scaler/launcher/supervise.h"

namespace muster {
namespace {

constexpr int kSupervisorEndMs = 10'000;

}  // namespace

ProcessLauncher::ProcessLauncher(Options options) : options_(std::move(options)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ProcessLauncher::~ProcessLauncher() {
  // End of file on the control socket is the order to kill everything.
  for (auto& [name, node] : nodes_) ::close(node.control_fd);
  options_.spare_supervisors = false;
  for (auto& [name, node] : nodes_) Bury(node);
  KillDescendants({});
}

std::string ProcessLauncher::LogPath(const std::string& node) const {
  return fmt::format("{}/{}.log", options_.log_directory, node);
}

absl::Status ProcessLauncher::Start(const NodeCommand& command) {
  MUSTER_CHECK_MSG(!nodes_.contains(command.name), command.name);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return ErrnoStatus(errno, fmt::format("{}: cannot create a socket", command.name));
  }
  std::vector<int> inherited = command.inherited_fds;
  // What the command gets is held by its supervising process, too.
  const bool held =
      std::find(inherited.begin(), inherited.end(), options_.held_fd) == inherited.end();
  SuperviseOptions options{.name = command.name,
                           .control_fd = sockets[1],
                           .keep_descendants = command.keep_descendants,
                           .held_fd = held ? options_.held_fd : -1,
                           .pass_fds = command.inherited_fds,
                           .parent_pid = ::getpid(),
                           .log_path = LogPath(command.name),
                           .log_bytes_max = options_.log_bytes_max,
                           .working_directory = command.working_directory,
                           .command = command.command};
  std::vector<std::string> arguments = SuperviseArguments(options);
  arguments.insert(arguments.begin(), {options_.program, "supervise"});
  inherited.insert(inherited.end(), {sockets[1], options_.held_fd});
  absl::StatusOr<pid_t> pid =
      Spawn(options_.program, arguments, SupervisorEnvironment(command.environment), inherited);
  ::close(sockets[1]);
  if (!pid.ok()) {
    ::close(sockets[0]);
    return Annotate(pid.status(), command.name);
  }
  nodes_[command.name] = Running{.supervisor = *pid, .control_fd = sockets[0]};
  return absl::OkStatus();
}

void ProcessLauncher::Send(const std::string& node, uint32_t kind, uint32_t timeout_ms) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  const SuperviseCommand command{.kind = kind, .timeout_ms = timeout_ms};
  // A supervisor that cannot take it is ending: its end of file says so soon.
  ::send(found->second.control_fd, &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ProcessLauncher::Stop(const std::string& node, std::chrono::milliseconds timeout) {
  Send(node, SuperviseCommand::kStop, static_cast<uint32_t>(timeout.count()));
}

void ProcessLauncher::Kill(const std::string& node) {
  Send(node, SuperviseCommand::kKill, 0);
}

std::vector<ProcessReport> ProcessLauncher::Wait(std::chrono::milliseconds timeout,
                                                 const std::vector<int>& wake_fds) {
  std::vector<pollfd> fds;
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    fds.push_back({node.control_fd, POLLIN, 0});
    names.push_back(name);
  }
  for (int fd : wake_fds) fds.push_back({fd, POLLIN, 0});
  std::vector<ProcessReport> reports;
  if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0) return reports;
  for (size_t i = 0; i < names.size(); ++i) {
    if (fds[i].revents == 0) continue;
    Running& node = nodes_[names[i]];
    if (Read(names[i], &node, &reports)) continue;
    ::close(node.control_fd);
    Bury(node);
    nodes_.erase(names[i]);
  }
  return reports;
}

bool ProcessLauncher::Read(const std::string& name, Running* node,
                           std::vector<ProcessReport>* reports) {
  SuperviseReport report;
  const ssize_t got = ::recv(node->control_fd, &report, sizeof(report), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got != sizeof(report)) {
    // The supervisor died without a word: somebody killed it, and its command died with it.
    reports->push_back({.node = name,
                        .kind = ProcessReport::Kind::kExited,
                        .pid = node->pid,
                        .exit = {.signal = SIGKILL}});
    return false;
  }
  if (report.kind == SuperviseReport::kStarted) {
    node->pid = report.pid;
    reports->push_back(
        {.node = name, .kind = ProcessReport::Kind::kStarted, .pid = report.pid, .exit = {}});
    return true;
  }
  reports->push_back({.node = name,
                      .kind = ProcessReport::Kind::kExited,
                      .pid = report.pid,
                      .exit = {.signal = report.signal, .code = report.code},
                      .shortage = report.shortage != 0});
  return false;
}

void ProcessLauncher::Bury(const Running& node) {
  // It ends within milliseconds, unless somebody stopped it.
  const int pidfd = ::pidfd_open(node.supervisor, 0);
  pollfd ended = {pidfd, POLLIN, 0};
  if (pidfd < 0 || ::poll(&ended, 1, kSupervisorEndMs) == 0) ::kill(node.supervisor, SIGKILL);
  if (pidfd >= 0) ::close(pidfd);
  while (::waitpid(node.supervisor, nullptr, 0) < 0 && errno == EINTR) {
  }
  // What the supervisor left behind, should it have been killed, is ours now.
  KillDescendants(Others(node.supervisor));
}

Spared ProcessLauncher::Others(pid_t supervisor) const {
  Spared spared{.pids = {}, .supervisors = options_.spare_supervisors};
  for (const auto& [name, node] : nodes_) {
    if (node.supervisor != supervisor) spared.pids.push_back(node.supervisor);
  }
  return spared;
}

void ProcessLauncher::Sweep() {
  SweepChildren(Others(-1));
}

}  // namespace muster
