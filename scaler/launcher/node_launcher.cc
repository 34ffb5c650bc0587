#include "scaler/launcher/node_launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "scaler/launcher/pidfd.h"
#include "scaler/launcher/slot.h"
#include "scaler/launcher/spawn.h"

namespace muster::scaler {
namespace {

/// A killed process ends within milliseconds.
constexpr int kDeathMs = 10'000;

void WaitEnded(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  if (pidfd >= 0) ::poll(&ended, 1, kDeathMs);
}

/// False when it runs on.
bool Reap(pid_t pid, int flags) {
  pid_t got;
  do {
    got = ::waitpid(pid, nullptr, flags);
  } while (got < 0 && errno == EINTR);
  return got != 0;
}

}  // namespace

NodeLauncher::Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<NodeLauncher> NodeLauncher::Open(Options options) {
  MUSTER_ASSIGN_OR_RETURN(NodeSockets sockets, NodeSockets::Open(options.socket_directory));
  return NodeLauncher(std::move(options), std::move(sockets));
}

NodeLauncher::NodeLauncher(Options options, NodeSockets sockets)
    : options_(std::move(options)), sockets_(std::move(sockets)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

NodeLauncher::~NodeLauncher() = default;

std::string NodeLauncher::LogPath(const std::string& node) const {
  return fmt::format("{}/{}.log", options_.log_directory, node);
}

absl::StatusOr<std::vector<FoundNode>> NodeLauncher::Find() {
  std::vector<FoundNode> found;
  for (const auto& [name, start] : sockets_.List()) {
    absl::StatusOr<int> connection = sockets_.Connect(name, start);
    if (absl::IsNotFound(connection.status())) {
      sockets_.Remove(name, start);
      found.push_back({name, start, /*alive=*/false});
      continue;
    }
    if (!connection.ok()) return connection.status();
    // Sorted by name and text of the number: the newest start may come at any place.
    const auto former = nodes_.find(name);
    Node node{.start = start, .connection = Fd(*connection)};
    if (former == nodes_.end()) {
      nodes_.emplace(name, std::move(node));
    } else if (former->second.start < start) {
      former->second = std::move(node);
    }
    found.push_back({name, start, /*alive=*/true});
  }
  return found;
}

void NodeLauncher::Discard(const FoundNode& found) {
  const auto node = nodes_.find(found.node);
  if (node != nodes_.end() && node->second.start == found.start) nodes_.erase(node);
  const absl::StatusOr<int> connection = sockets_.Connect(found.node, found.start);
  sockets_.Remove(found.node, found.start);
  if (!connection.ok()) return;
  const Node discarded{.connection = Fd(*connection)};
  Send(discarded, SuperviseCommand::kKill, 0);
  Send(discarded, SuperviseCommand::kRelease, 0);
}

absl::Status NodeLauncher::Start(const NodeCommand& command, uint32_t start) {
  MUSTER_CHECK_MSG(!nodes_.contains(command.name), command.name);
  if (!command.slot_file.empty()) MUSTER_RETURN_IF_ERROR(ResetSlot(command.slot_file));
  MUSTER_ASSIGN_OR_RETURN(const int listening, sockets_.Listen(command.name, start));
  const Fd close_listening(listening);
  SuperviseOptions options{.name = command.name,
                           .listen_fd = listening,
                           .start = start,
                           .life_fd = options_.life_fd,
                           .held_fd = options_.held_fd,
                           .log_path = LogPath(command.name),
                           .log_bytes_max = options_.log_bytes_max,
                           .working_directory = command.working_directory,
                           .command = command.command};
  std::vector<std::string> arguments = SuperviseArguments(options);
  arguments.insert(arguments.begin(), {options_.program, "supervise"});
  std::vector<int> inherited = command.inherited_fds;
  inherited.insert(inherited.end(), {listening, options_.life_fd, options_.held_fd});
  const absl::StatusOr<pid_t> pid =
      Spawn(options_.program, arguments, MergedEnvironment(command.environment), inherited);
  if (!pid.ok()) {
    sockets_.Remove(command.name, start);
    return Annotate(pid.status(), command.name);
  }
  Node node{.start = start, .child = *pid, .supervisor = Fd(::pidfd_open(*pid, 0))};
  // It cannot fail: this process, too, has the listening socket open.
  absl::StatusOr<int> connection = sockets_.Connect(command.name, start);
  if (!connection.ok()) {
    ::kill(*pid, SIGKILL);
    leaving_.push_back(*pid);
    return connection.status();
  }
  node.connection = Fd(*connection);
  nodes_.emplace(command.name, std::move(node));
  return absl::OkStatus();
}

void NodeLauncher::Send(const Node& node, uint32_t kind, uint32_t timeout_ms) {
  const SuperviseCommand command{.kind = kind, .timeout_ms = timeout_ms};
  // One that cannot take it is ending: its end of file says so soon.
  ::send(node.connection.get(), &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void NodeLauncher::Stop(const std::string& node, std::chrono::milliseconds timeout) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Send(found->second, SuperviseCommand::kStop, static_cast<uint32_t>(timeout.count()));
}

void NodeLauncher::Kill(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) Send(found->second, SuperviseCommand::kKill, 0);
}

void NodeLauncher::Release(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Send(found->second, SuperviseCommand::kRelease, 0);
  sockets_.Remove(node, found->second.start);
  if (found->second.child > 0) leaving_.push_back(found->second.child);
  nodes_.erase(found);
}

std::vector<ProcessReport> NodeLauncher::Wait(std::chrono::milliseconds timeout,
                                              const std::vector<int>& wake_fds) {
  ReapLeaving();
  std::vector<pollfd> fds;
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (node.over) continue;
    fds.push_back({node.connection.get(), POLLIN, 0});
    names.push_back(name);
  }
  for (int fd : wake_fds) fds.push_back({fd, POLLIN, 0});
  std::vector<ProcessReport> reports;
  if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0) return reports;
  for (size_t i = 0; i < names.size(); ++i) {
    if (fds[i].revents != 0) Read(names[i], &nodes_.at(names[i]), &reports);
  }
  return reports;
}

void NodeLauncher::Read(const std::string& name, Node* node, std::vector<ProcessReport>* reports) {
  SuperviseReport state;
  const ssize_t got = ::recv(node->connection.get(), &state, sizeof(state), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == sizeof(state)) {
    Take(name, state, node, reports);
  } else {
    Bury(name, node, reports);
  }
}

void NodeLauncher::Take(const std::string& name, const SuperviseReport& state, Node* node,
                        std::vector<ProcessReport>* reports) {
  // It lives, for it spoke: its pid, and that of a command that runs, are nobody else's.
  if (node->supervisor.get() < 0) node->supervisor = Fd(::pidfd_open(state.supervisor, 0));
  if (state.pid != 0 && !std::exchange(node->told_start, true)) {
    node->pid = state.pid;
    if (state.kind == SuperviseReport::kStarted) node->process = Fd(::pidfd_open(state.pid, 0));
    reports->push_back(
        {.node = name, .kind = ProcessReport::Kind::kStarted, .pid = state.pid, .exit = {}});
  }
  if (state.kind != SuperviseReport::kExited) return;
  node->over = true;
  reports->push_back({.node = name,
                      .kind = ProcessReport::Kind::kExited,
                      .pid = state.pid,
                      .exit = {.signal = state.signal, .code = state.code}});
}

void NodeLauncher::Bury(const std::string& name, Node* node, std::vector<ProcessReport>* reports) {
  // Its end of file comes before its death, and the command's death after both.
  WaitEnded(node->supervisor.get());
  WaitEnded(node->process.get());
  if (node->child > 0) {
    Reap(node->child, 0);
    // What was below the command is ours; of a node that another process started, the run's, which
    // sweeps it up.
    KillDescendants(OwnChildren(node->child));
  }
  Log(LogLevel::kWarning, "{}: its supervising process was killed, and it died with it", name);
  reports->push_back({.node = name,
                      .kind = ProcessReport::Kind::kExited,
                      .pid = node->pid,
                      .exit = {.signal = SIGKILL}});
  sockets_.Remove(name, node->start);
  nodes_.erase(name);
}

Spared NodeLauncher::OwnChildren(pid_t but) const {
  Spared spared{.pids = leaving_, .supervisors = true};
  for (const auto& [name, node] : nodes_) {
    if (node.child > 0 && node.child != but) spared.pids.push_back(node.child);
  }
  return spared;
}

void NodeLauncher::ReapLeaving() {
  std::erase_if(leaving_, [](pid_t pid) { return Reap(pid, WNOHANG); });
}

}  // namespace muster::scaler
