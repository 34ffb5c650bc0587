#include "scaler/launcher/node_launcher.h"

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
#include "base/log.h"
#include "base/status.h"
#include "scaler/launcher/pidfd.h"
#include "scaler/launcher/slot.h"
#include "scaler/launcher/spawn.h"
#include "scaler/launcher/tree_usage.h"

namespace muster::scaler {
namespace {

/// How a shell ends whose command was killed.
constexpr int kKilledBelowShell = 128 + SIGKILL;
/// A killed process ends within milliseconds.
constexpr int kDeathMs = 10'000;

void WaitEnded(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  if (pidfd >= 0) ::poll(&ended, 1, kDeathMs);
}

std::string WithoutGroups(const std::string& why) {
  return fmt::format(
      "without control groups, memory is looked at ten times a second, and CPU is not limited: {}",
      why);
}

CgroupLimits ToLimits(const Resources& limits) {
  return {.memory_bytes = limits.memory_bytes, .cpus = limits.cpus};
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

absl::StatusOr<NodeLauncher> NodeLauncher::Open(Options options) {
  MUSTER_ASSIGN_OR_RETURN(NodeSockets sockets, NodeSockets::Open(options.socket_directory));
  return NodeLauncher(std::move(options), std::move(sockets));
}

NodeLauncher::NodeLauncher(Options options, NodeSockets sockets)
    : options_(std::move(options)), sockets_(std::move(sockets)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (options_.run_id.empty()) {
    limits_remark_ = WithoutGroups("none are wanted");
    return;
  }
  groups_ = CgroupTree::Detect({.run_id = options_.run_id, .root = "", .movable = RunFamily()});
  limits_remark_ = groups_.backend() == CgroupBackend::kNone ? WithoutGroups(groups_.remark())
                                                             : groups_.remark();
  for (const std::string& run_id : groups_.RemoveDead()) {
    Log(LogLevel::kInfo, "removed the control groups of the dead run {}", run_id);
  }
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
    Node node{.start = start, .connection = OwnedFd(*connection)};
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
  const Node discarded{.connection = OwnedFd(*connection)};
  Send(discarded, {.kind = SuperviseCommand::kKill});
  Send(discarded, {.kind = SuperviseCommand::kRelease});
}

absl::Status NodeLauncher::Start(const NodeCommand& command, uint32_t start,
                                 const Resources& limits) {
  MUSTER_CHECK_MSG(!nodes_.contains(command.name), command.name);
  if (!command.slot_file.empty()) MUSTER_RETURN_IF_ERROR(ResetSlot(command.slot_file));
  MUSTER_ASSIGN_OR_RETURN(const int listening, sockets_.Listen(command.name, start));
  const OwnedFd close_listening(listening);
  std::optional<Cgroup> group;
  if (groups_.backend() != CgroupBackend::kNone) {
    group = MakeGroup(command.name, start, limits);
  }
  SuperviseOptions options{.name = command.name,
                           .listen_fd = listening,
                           .start = start,
                           .life_fd = options_.life_fd,
                           .held_fd = options_.held_fd,
                           .pass_fds = command.inherited_fds,
                           .cgroup_fds = group ? group->join_fds() : std::vector<int>(),
                           .memory_limit_bytes = limits.memory_bytes,
                           .log_path = LogPath(command.name),
                           .log_bytes_max = options_.log_bytes_max,
                           .working_directory = command.working_directory,
                           .command = command.command};
  std::vector<std::string> arguments = SuperviseArguments(options);
  arguments.insert(arguments.begin(), {options_.program, "supervise"});
  std::vector<int> inherited = command.inherited_fds;
  inherited.insert(inherited.end(), {listening, options_.life_fd, options_.held_fd});
  inherited.insert(inherited.end(), options.cgroup_fds.begin(), options.cgroup_fds.end());
  const absl::StatusOr<pid_t> pid =
      Spawn(options_.program, arguments, SupervisorEnvironment(command.environment), inherited);
  if (!pid.ok()) {
    sockets_.Remove(command.name, start);
    return Annotate(pid.status(), command.name);
  }
  Node node{.start = start,
            .child = *pid,
            .supervisor = OwnedFd(::pidfd_open(*pid, 0)),
            .supervisor_pid = *pid,
            .memory_limit_bytes = options.memory_limit_bytes,
            .cpus = limits.cpus,
            .grouped = group.has_value()};
  // It cannot fail: this process, too, has the listening socket open.
  absl::StatusOr<int> connection = sockets_.Connect(command.name, start);
  if (!connection.ok()) {
    ::kill(*pid, SIGKILL);
    leaving_.push_back(*pid);
    return connection.status();
  }
  node.connection = OwnedFd(*connection);
  nodes_.emplace(command.name, std::move(node));
  return absl::OkStatus();
}

std::optional<Cgroup> NodeLauncher::MakeGroup(const std::string& node, uint32_t start,
                                              const Resources& limits) const {
  absl::StatusOr<Cgroup> group = groups_.Make(node, start);
  absl::Status status = group.status();
  if (status.ok()) status = group->SetLimits(ToLimits(limits));
  if (status.ok()) status = group->OpenToJoin();
  if (status.ok()) return *std::move(group);
  Log(LogLevel::kWarning, "{} starts without a control group: {}", node, Message(status));
  return std::nullopt;
}

std::optional<Cgroup> NodeLauncher::GroupOf(const std::string& name, const Node& node) const {
  return node.grouped ? GroupOf(name, node.start) : std::nullopt;
}

std::optional<Cgroup> NodeLauncher::GroupOf(const std::string& name, uint32_t start) const {
  absl::StatusOr<Cgroup> group = groups_.Open(name, start);
  return group.ok() ? std::optional<Cgroup>(*std::move(group)) : std::nullopt;
}

absl::StatusOr<NodeLauncher::Node*> NodeLauncher::Running(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.over) {
    return absl::NotFoundError(fmt::format("{} does not run", node));
  }
  return &found->second;
}

absl::Status NodeLauncher::SetLimits(const std::string& name, const Resources& limits) {
  MUSTER_ASSIGN_OR_RETURN(Node* const node, Running(name));
  std::optional<Cgroup> group = GroupOf(name, *node);
  // What was passed over at the start is passed over again: only another one is refused. The first
  // of a node that was found repeats what it has.
  const bool other_cpus = limits.cpus != node->cpus.value_or(limits.cpus);
  if (limits.cpus > 0 && other_cpus && !(group.has_value() && group->has_cpu())) {
    return absl::FailedPreconditionError(
        fmt::format("{}: its CPU cannot be limited: {}", name,
                    limits_remark_.empty() ? "it is not in its control group" : limits_remark_));
  }
  if (group.has_value()) {
    MUSTER_RETURN_IF_ERROR(group->SetLimits(ToLimits(limits)));
    node->cpus = limits.cpus;
    return absl::OkStatus();
  }
  if (limits.memory_bytes > 0 && node->supervisor_pid > 0) {
    const uint64_t used = ReadTreeMemory(node->supervisor_pid);
    if (used > limits.memory_bytes) {
      return absl::FailedPreconditionError(
          fmt::format("{}: a memory limit of {} bytes is below the {} bytes in use", name,
                      limits.memory_bytes, used));
    }
  }
  Send(*node, {.kind = SuperviseCommand::kLimitMemory, .memory_limit_bytes = limits.memory_bytes});
  node->memory_limit_bytes = limits.memory_bytes;
  node->cpus = limits.cpus;
  return absl::OkStatus();
}

NodeUsage UsageOf(const CgroupUsage& group,
                  const std::function<std::chrono::microseconds()>& tree_cpu) {
  return {.kernel_limits = true,
          .cpu = group.cpu.has_value() ? *group.cpu : tree_cpu(),
          .throttled = group.throttled,
          .memory_bytes = group.memory_bytes,
          .memory_peak_bytes = group.memory_peak_bytes,
          .memory_limit_bytes = group.memory_limit_bytes,
          .memory_pressure_percent = group.memory_pressure_percent,
          .cpu_pressure_percent = group.cpu_pressure_percent};
}

absl::StatusOr<NodeUsage> NodeLauncher::ReadUsage(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(Node* const node, Running(name));
  if (const std::optional<Cgroup> group = GroupOf(name, *node); group.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const CgroupUsage usage, group->ReadUsage());
    if (usage.cpu.has_value() || node->supervisor_pid != 0) {
      return UsageOf(usage, [node] { return ReadTreeUsage(node->supervisor_pid).cpu; });
    }
  }
  if (node->supervisor_pid == 0) {
    return absl::UnavailableError(fmt::format("{} has not been heard of yet", name));
  }
  const TreeUsage usage = ReadTreeUsage(node->supervisor_pid);
  node->memory_peak_bytes = std::max(node->memory_peak_bytes, usage.memory_bytes);
  return NodeUsage{.cpu = usage.cpu,
                   .memory_bytes = usage.memory_bytes,
                   .memory_peak_bytes = node->memory_peak_bytes,
                   .memory_limit_bytes = node->memory_limit_bytes};
}

absl::Status NodeLauncher::DumpStacks(const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(Node* const node, Running(name));
  Send(*node, {.kind = SuperviseCommand::kDumpStacks});
  return absl::OkStatus();
}

void NodeLauncher::RemoveGroups() {
  if (groups_.backend() == CgroupBackend::kNone) return;
  if (const absl::Status removed = groups_.Remove(); !removed.ok()) {
    Log(LogLevel::kWarning, "{}", Message(removed));
  }
}

void NodeLauncher::Send(const Node& node, const SuperviseCommand& command) {
  // One that cannot take it is ending: its end of file says so soon.
  ::send(node.connection.get(), &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void NodeLauncher::Stop(const std::string& node, std::chrono::milliseconds timeout) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Send(found->second,
       {.kind = SuperviseCommand::kStop, .timeout_ms = static_cast<uint32_t>(timeout.count())});
}

void NodeLauncher::Kill(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) Send(found->second, {.kind = SuperviseCommand::kKill});
}

void NodeLauncher::Release(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Send(found->second, {.kind = SuperviseCommand::kRelease});
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
  if (node->supervisor.get() < 0) node->supervisor = OwnedFd(::pidfd_open(state.supervisor, 0));
  node->supervisor_pid = state.supervisor;
  node->memory_limit_bytes = state.memory_limit_bytes;
  node->grouped = state.grouped != 0;
  if (state.pid != 0 && !std::exchange(node->told_start, true)) {
    node->pid = state.pid;
    if (state.kind == SuperviseReport::kStarted)
      node->process = OwnedFd(::pidfd_open(state.pid, 0));
    reports->push_back(
        {.node = name, .kind = ProcessReport::Kind::kStarted, .pid = state.pid, .exit = {}});
  }
  if (state.kind != SuperviseReport::kExited) return;
  node->over = true;
  reports->push_back(ExitReport(name, state));
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
  reports->push_back(ExitReport(name, {.pid = node->pid,
                                       .signal = SIGKILL,
                                       .start = node->start,
                                       .grouped = node->grouped ? 1u : 0u,
                                       .memory_peak_bytes = node->memory_peak_bytes,
                                       .memory_limit_bytes = node->memory_limit_bytes}));
  sockets_.Remove(name, node->start);
  nodes_.erase(name);
}

ProcessReport NodeLauncher::ExitReport(const std::string& name,
                                       const SuperviseReport& state) const {
  ProcessReport report{.node = name,
                       .kind = ProcessReport::Kind::kExited,
                       .pid = state.pid,
                       .exit = {.signal = state.signal, .code = state.code},
                       .memory_peak_bytes = state.memory_peak_bytes,
                       .memory_limit_bytes = state.memory_limit_bytes,
                       .shortage = state.shortage != 0};
  if (state.own_kill != 0 && state.signal == SIGKILL) report.memory_kill = MemoryKill::kOwn;
  const std::optional<Cgroup> group =
      state.grouped != 0 ? GroupOf(name, state.start) : std::nullopt;
  if (!group.has_value()) return report;
  const absl::StatusOr<CgroupUsage> usage = group->ReadUsage();
  if (!usage.ok()) return report;
  // Version 1 kills one process of several: the command then may end in its own way.
  const bool may_be = state.signal == SIGKILL || Classify(report.exit) == ExitKind::kProgram;
  if (may_be) report.memory_kill = KillOf(*usage);
  if (report.memory_kill != MemoryKill::kNone && state.code == kKilledBelowShell) {
    report.exit = {.signal = SIGKILL};
  }
  report.memory_peak_bytes = usage->memory_peak_bytes;
  report.memory_limit_bytes = usage->memory_limit_bytes;
  return report;
}

ProcessReport NodeLauncher::DeathReport(const std::string& node, uint32_t start) const {
  return ExitReport(node, {.signal = SIGKILL, .start = start, .grouped = 1});
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
