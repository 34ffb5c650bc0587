#include "host/processes/node_launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "host/processes/log_reader.h"

namespace muster {
namespace {

/// This variable is in the environment of every process that a run starts.
constexpr std::string_view kMarkName = "MUSTER_STARTED_BY=";

/// A process without sockets begins a run. A process with sockets continues a run, below its first
/// process or beside it.
std::string MarkOf(bool begins) {
  const std::string_view name = kMarkName.substr(0, kMarkName.size() - 1);
  const char* const given = begins ? nullptr : std::getenv(std::string(name).c_str());
  if (given != nullptr) return fmt::format("{}{}", kMarkName, given);
  // The mark includes the time, because pids are used again.
  return fmt::format("{}{}.{}", kMarkName, ::getpid(), SystemClock().Wall().count());
}

/// A killed process ends within milliseconds.
constexpr int kDeathMs = 10'000;
constexpr uint32_t kLastWordsLines = 20;
constexpr uint64_t kLastWordsBytes = 4'000;

/// False if it lives, or if its state is unknown.
bool WaitEnded(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  return pidfd >= 0 && ::poll(&ended, 1, kDeathMs) == 1;
}

/// False if it still runs.
bool Reap(pid_t pid, int flags) {
  pid_t got;
  do {
    got = ::waitpid(pid, nullptr, flags);
  } while (got < 0 && errno == EINTR);
  return got != 0;
}

}  // namespace

NodeLauncher::NodeLauncher(Options options, std::optional<NodeSockets> sockets)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      mark_(MarkOf(/*begins=*/!sockets_.has_value())),
      wake_(::epoll_create1(EPOLL_CLOEXEC)) {
  MUSTER_CHECK_MSG(wake_.get() >= 0, "cannot create an epoll; is the limit of open files reached?");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

NodeLauncher::~NodeLauncher() {
  if (sockets_.has_value()) return;
  // End of file is the order to kill everything.
  for (auto& [name, node] : nodes_) node.connection = OwnedFd();
  options_.spare_supervisors = false;
  for (const auto& [name, node] : nodes_) Bury(node);
  KillDescendants({.mark = mark_});
}

std::string NodeLauncher::LogPath(const std::string& node) const {
  return fmt::format("{}/{}.log", options_.log_directory, node);
}

absl::StatusOr<std::vector<FoundNode>> NodeLauncher::Find() {
  std::vector<FoundNode> found;
  for (const auto& [name, start] : sockets_->List()) {
    Node node{.known = {.start = start}};
    const absl::Status connected = Connect(name, &node);
    if (absl::IsNotFound(connected)) {
      sockets_->Remove(name, start);
      found.push_back({name, start, /*alive=*/false});
      continue;
    }
    MUSTER_RETURN_IF_ERROR(connected);
    // The list is sorted by name and by the text of the number, so the newest start may be
    // anywhere.
    const auto former = nodes_.find(name);
    if (former == nodes_.end() || former->second.known.start < start) {
      Erase(name);
      nodes_.emplace(name, std::move(node));
    }
    found.push_back({name, start, /*alive=*/true});
  }
  for (const auto& [name, node] : nodes_) Watch(node, EPOLL_CTL_ADD);
  return found;
}

void NodeLauncher::Discard(const FoundNode& found) {
  const auto node = nodes_.find(found.node);
  if (node != nodes_.end() && node->second.known.start == found.start) Erase(found.node);
  Node discarded{.known = {.start = found.start}};
  const bool lives = Connect(found.node, &discarded).ok();
  sockets_->Remove(found.node, found.start);
  if (!lives) return;
  Send(discarded, {.kind = SuperviseCommand::kKill});
  Send(discarded, {.kind = SuperviseCommand::kRelease});
}

absl::Status NodeLauncher::Connect(const std::string& name, Node* node) {
  MUSTER_ASSIGN_OR_RETURN(const int fd, sockets_->Connect(name, node->known.start));
  node->connection = OwnedFd(fd);
  return absl::OkStatus();
}

absl::Status NodeLauncher::Start(const NodeCommand& command, const Life& life) {
  MUSTER_CHECK_MSG(!nodes_.contains(command.name), command.name);
  Node node{.known = {.start = life.start,
                      .memory_limit_bytes = life.memory_limit_bytes,
                      .grouped = !life.cgroup_fds.empty()}};
  OwnedFd theirs;
  if (sockets_.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const int listening, sockets_->Listen(command.name, life.start));
    theirs = OwnedFd(listening);
  } else {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
      return ErrnoStatus(errno, fmt::format("{}: cannot create a socket", command.name));
    }
    node.connection = OwnedFd(pair[0]);
    theirs = OwnedFd(pair[1]);
  }
  std::vector<int> inherited = command.inherited_fds;
  // The supervising process also keeps the descriptors that the command gets.
  const bool held =
      std::find(inherited.begin(), inherited.end(), options_.held_fd) == inherited.end();
  const SuperviseOptions options{.name = command.name,
                                 .control_fd = sockets_.has_value() ? -1 : theirs.get(),
                                 .listen_fd = sockets_.has_value() ? theirs.get() : -1,
                                 .start = life.start,
                                 .life_fd = options_.life_fd,
                                 .keep_descendants = command.keep_descendants,
                                 .held_fd = held ? options_.held_fd : -1,
                                 .pass_fds = command.inherited_fds,
                                 .cgroup_fds = life.cgroup_fds,
                                 .memory_limit_bytes = life.memory_limit_bytes,
                                 .parent_pid = sockets_.has_value() ? 0 : ::getpid(),
                                 .log_path = LogPath(command.name),
                                 .log_bytes_max = options_.log_bytes_max,
                                 .working_directory = command.working_directory,
                                 .command = command.command};
  std::vector<std::string> arguments = SuperviseArguments(options);
  arguments.insert(arguments.begin(), {options_.program, "supervise"});
  inherited.insert(inherited.end(), {theirs.get(), options_.life_fd, options_.held_fd});
  inherited.insert(inherited.end(), life.cgroup_fds.begin(), life.cgroup_fds.end());
  std::map<std::string, std::string> environment = command.environment;
  if (life.start > 0) environment["MUSTER_START"] = std::to_string(life.start);
  std::vector<std::string> entries = SupervisorEnvironment(environment);
  std::erase_if(entries, [](const std::string& entry) { return entry.starts_with(kMarkName); });
  entries.push_back(mark_);
  const absl::StatusOr<pid_t> pid = Spawn(ImageOf(options_.program), arguments, entries, inherited);
  if (!pid.ok()) {
    if (sockets_.has_value()) sockets_->Remove(command.name, life.start);
    return Annotate(pid.status(), command.name);
  }
  node.child = node.known.supervisor_pid = *pid;
  node.supervisor = OpenProcess(*pid);
  if (sockets_.has_value()) {
    // This cannot fail, because this process also has the listening socket open.
    if (absl::Status connected = Connect(command.name, &node); !connected.ok()) {
      ::kill(*pid, SIGKILL);
      leaving_.push_back(*pid);
      return connected;
    }
  }
  Watch(nodes_.emplace(command.name, std::move(node)).first->second, EPOLL_CTL_ADD);
  return absl::OkStatus();
}

void NodeLauncher::Watch(const Node& node, int operation) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  ::epoll_ctl(wake_.get(), operation, node.connection.get(), &event);
}

absl::StatusOr<const NodeLauncher::Running*> NodeLauncher::Look(const std::string& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.over) {
    return absl::NotFoundError(fmt::format("{} is not running", node));
  }
  return &found->second.known;
}

void NodeLauncher::Send(const Node& node, const SuperviseCommand& command) {
  // If a supervising process cannot take the message, it is ending, and its connection will soon
  // show end of file.
  ::send(node.connection.get(), &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void NodeLauncher::Send(const std::string& name, const SuperviseCommand& command) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) Send(found->second, command);
}

void NodeLauncher::LimitMemory(const std::string& node, uint64_t bytes) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second.known.memory_limit_bytes = bytes;
  Send(found->second, {.kind = SuperviseCommand::kLimitMemory, .memory_limit_bytes = bytes});
}

absl::Status NodeLauncher::DumpStacks(const std::string& node) {
  MUSTER_RETURN_IF_ERROR(Look(node).status());
  Send(node, {.kind = SuperviseCommand::kDumpStacks});
  return absl::OkStatus();
}

void NodeLauncher::Stop(const std::string& node, std::chrono::milliseconds timeout) {
  Send(node,
       {.kind = SuperviseCommand::kStop, .timeout_ms = static_cast<uint32_t>(timeout.count())});
}

void NodeLauncher::Kill(const std::string& node) {
  Send(node, {.kind = SuperviseCommand::kKill});
}

void NodeLauncher::Release(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Send(found->second, {.kind = SuperviseCommand::kRelease});
  sockets_->Remove(node, found->second.known.start);
  if (found->second.child > 0) leaving_.push_back(found->second.child);
  Erase(node);
}

void NodeLauncher::Erase(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  Watch(found->second, EPOLL_CTL_DEL);
  nodes_.erase(found);
}

std::vector<LaunchReport> NodeLauncher::Wait(std::chrono::milliseconds timeout,
                                             const std::vector<int>& wake_fds) {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  for (const int fd : wake_fds) fds.push_back({fd, POLLIN, 0});
  ::poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
  return TakeReports();
}

std::vector<LaunchReport> NodeLauncher::TakeReports() {
  ReapLeaving();
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (!node.over) names.push_back(name);
  }
  std::vector<LaunchReport> reports;
  for (const std::string& name : names) Read(name, &nodes_.at(name), &reports);
  return reports;
}

void NodeLauncher::Read(const std::string& name, Node* node, std::vector<LaunchReport>* reports) {
  SuperviseReport state;
  const ssize_t got = ::recv(node->connection.get(), &state, sizeof(state), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == sizeof(state)) return Take(name, state, node, reports);
  // The supervising process died without a report, and so did the command.
  Bury(*node);
  reports->push_back(ExitOf(name, {.pid = node->pid,
                                   .signal = SIGKILL,
                                   .start = node->known.start,
                                   .grouped = node->known.grouped ? 1u : 0u,
                                   .memory_limit_bytes = node->known.memory_limit_bytes}));
  if (sockets_.has_value()) {
    Log(LogLevel::kWarning, "{}: its supervising process was killed, so it was killed, too", name);
    sockets_->Remove(name, node->known.start);
  }
  Erase(name);
}

void NodeLauncher::Take(const std::string& name, const SuperviseReport& state, Node* node,
                        std::vector<LaunchReport>* reports) {
  // It has just sent a report, so it lives. Its pid, and the pid of a running command, cannot have
  // been reused.
  if (node->supervisor.get() < 0) node->supervisor = OpenProcess(state.supervisor);
  node->known.supervisor_pid = state.supervisor;
  node->known.memory_limit_bytes = state.memory_limit_bytes;
  node->known.grouped = state.grouped != 0;
  if (state.pid != 0 && !std::exchange(node->told_start, true)) {
    node->pid = state.pid;
    if (state.kind == SuperviseReport::kStarted) {
      node->process = OpenProcess(state.pid);
    }
    reports->push_back(NodeStarted{name, static_cast<uint64_t>(state.pid)});
  }
  if (state.kind != SuperviseReport::kExited) return;
  // With sockets, the supervising process keeps the exit until it is released. Otherwise, it ends
  // by itself.
  if (!sockets_.has_value()) Bury(*node);
  reports->push_back(ExitOf(name, state));
  if (!sockets_.has_value()) return Erase(name);
  node->over = true;
  Watch(*node, EPOLL_CTL_DEL);
}

void NodeLauncher::Bury(const Node& node) {
  // End of file comes before the death of the supervising process (unless it was stopped), and the
  // command dies after both.
  const bool ended = WaitEnded(node.supervisor.get());
  if (!ended && !sockets_.has_value()) ::kill(node.child, SIGKILL);
  WaitEnded(node.process.get());
  if (node.child <= 0) return;
  Reap(node.child, 0);
  // The descendants of the command have become our children. If another process started the node,
  // they have become children of `muster run`, which kills them.
  KillDescendants(OwnChildren(node.child));
}

NodeExited NodeLauncher::ExitOf(const std::string& node, const SuperviseReport& state) const {
  NodeExited exit{.node = node,
                  .pid = static_cast<uint64_t>(state.pid),
                  .exit = {.signal = state.signal, .code = state.code},
                  .slot = std::nullopt,
                  .last_words = LastWords(LogPath(node), kLastWordsLines, kLastWordsBytes),
                  .memory_peak_bytes = state.memory_peak_bytes,
                  .memory_limit_bytes = state.memory_limit_bytes,
                  .not_started = state.shortage != 0};
  if (state.own_kill != 0 && state.signal == SIGKILL) exit.memory_kill = MemoryKill::kOwn;
  if (options_.complete) options_.complete(state, &exit);
  return exit;
}

Spared NodeLauncher::OwnChildren(pid_t but) const {
  Spared spared{.pids = leaving_,
                .supervisors = sockets_.has_value() || options_.spare_supervisors,
                .mark = mark_};
  for (const auto& [name, node] : nodes_) {
    if (node.child > 0 && node.child != but) spared.pids.push_back(node.child);
  }
  return spared;
}

void NodeLauncher::Sweep() {
  SweepChildren(OwnChildren(-1));
}

void NodeLauncher::ReapLeaving() {
  std::erase_if(leaving_, [](pid_t pid) { return Reap(pid, WNOHANG); });
}

}  // namespace muster
