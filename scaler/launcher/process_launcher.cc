#include "scaler/launcher/process_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/check.h"
#include "base/status.h"
#include "scaler/launcher/pidfd.h"
#include "scaler/launcher/process_tree.h"
#include "scaler/launcher/supervise.h"

namespace muster {
namespace {

constexpr int kSupervisorEndMs = 10'000;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// The launcher's environment with `added` on top.
std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!added.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

/// posix_spawn rather than fork: the caller may have threads (gRPC's), and fork handlers of
/// libraries must not run. `inherited_fds` alone are passed on, those that are not negative.
absl::StatusOr<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const std::vector<int>& inherited_fds) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // A dup onto itself clears close-on-exec in the child alone.
  for (int fd : inherited_fds) {
    if (fd >= 0) ::posix_spawn_file_actions_adddup2(&actions, fd, fd);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  absl::Cleanup destroy = [&] {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  };
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(environment);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  if (error != 0) return ErrnoStatus(error, fmt::format("cannot start {}", program));
  return pid;
}

}  // namespace

ProcessLauncher::ProcessLauncher(Options options) : options_(std::move(options)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ProcessLauncher::~ProcessLauncher() {
  // End of file on the control socket is the order to kill everything.
  for (auto& [name, node] : nodes_) ::close(node.control_fd);
  for (auto& [name, node] : nodes_) Bury(node);
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
  SuperviseOptions options{.name = command.name,
                           .control_fd = sockets[1],
                           .held_fd = options_.held_fd,
                           .parent_pid = ::getpid(),
                           .log_path = LogPath(command.name),
                           .log_bytes_max = options_.log_bytes_max,
                           .working_directory = command.working_directory,
                           .command = command.command};
  std::vector<std::string> arguments = SuperviseArguments(options);
  arguments.insert(arguments.begin(), {options_.program, "supervise"});
  absl::StatusOr<pid_t> pid =
      Spawn(options_.program, arguments, MergedEnvironment(command.environment),
            {sockets[1], options_.held_fd});
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
                      .exit = {.signal = report.signal, .code = report.code}});
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
  std::vector<pid_t> others;
  for (const auto& [name, other] : nodes_) {
    if (other.supervisor != node.supervisor) others.push_back(other.supervisor);
  }
  KillDescendants(others);
}

}  // namespace muster
