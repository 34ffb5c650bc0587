#include "host/processes/local_host.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "host/node_name.h"
#include "host/processes/log_reader.h"
#include "host/processes/machine.h"
#include "host/processes/slot.h"
#include "host/processes/tree_usage.h"

namespace muster {
namespace {

/// A shell has this exit code if its command was killed.
constexpr int kKilledBelowShell = 128 + SIGKILL;

std::string WithoutGroups(const std::string& why) {
  return fmt::format(
      "without control groups, memory is checked ten times a second, and CPU is not limited: {}",
      why);
}

CgroupLimits ToLimits(const Resources& limits) {
  return {.memory_bytes = limits.memory_bytes, .cpus = limits.cpus};
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalHost>> LocalHost::Open(Options options) {
  MUSTER_ASSIGN_OR_RETURN(NodeSockets sockets, NodeSockets::Open(options.socket_directory));
  return std::unique_ptr<LocalHost>(new LocalHost(std::move(options), std::move(sockets)));
}

LocalHost::LocalHost(Options options, NodeSockets sockets)
    : options_(std::move(options)),
      launcher_({.program = options_.program,
                 .log_directory = options_.log_directory,
                 .log_bytes_max = options_.log_bytes_max,
                 .life_fd = options_.life_fd,
                 .held_fd = options_.held_fd,
                 .complete = [this](const SuperviseReport& state,
                                    NodeExited* exit) { Complete(state, exit); }},
                std::move(sockets)) {
  if (options_.run_id.empty()) {
    limits_remark_ = WithoutGroups("this run uses none");
    return;
  }
  groups_ = CgroupTree::Detect({.run_id = options_.run_id, .root = "", .movable = RunFamily()});
  limits_remark_ = groups_.backend() == CgroupBackend::kNone ? WithoutGroups(groups_.remark())
                                                             : groups_.remark();
  for (const std::string& run_id : groups_.RemoveDead()) {
    Log(LogLevel::kInfo, "removed the control groups of the dead run {}", run_id);
  }
}

Resources LocalHost::Capacity() const {
  return MachineResources();
}

std::optional<std::chrono::microseconds> LocalHost::Idle() const {
  return MachineIdle();
}

NodeExited LocalHost::DeathOf(const std::string& node, uint32_t start) const {
  return launcher_.ExitOf(node, {.signal = SIGKILL, .start = start, .grouped = 1});
}

absl::Status LocalHost::Start(const StartNode& start) {
  const NodeCommand command = options_.command_of(start.node, start.role);
  if (!command.slot_file.empty()) MUSTER_RETURN_IF_ERROR(ResetSlot(command.slot_file));
  const std::optional<Cgroup> group = MakeGroup(start);
  known_[start.node] = {.cpus = start.limits.cpus};
  return launcher_.Start(command, {.start = start.start,
                                   .memory_limit_bytes = start.limits.memory_bytes,
                                   .cgroup_fds = group ? group->join_fds() : std::vector<int>()});
}

std::optional<Cgroup> LocalHost::MakeGroup(const StartNode& start) const {
  if (groups_.backend() == CgroupBackend::kNone) return std::nullopt;
  absl::StatusOr<Cgroup> group = groups_.Make(start.node, start.start);
  absl::Status status = group.status();
  if (status.ok()) status = group->SetLimits(ToLimits(start.limits));
  if (status.ok()) status = group->OpenToJoin();
  if (status.ok()) return *std::move(group);
  Log(LogLevel::kWarning, "{} starts without a control group: {}", start.node, Message(status));
  return std::nullopt;
}

std::optional<Cgroup> LocalHost::GroupOf(const std::string& node, uint32_t start) const {
  absl::StatusOr<Cgroup> group = groups_.Open(node, start);
  return group.ok() ? std::optional<Cgroup>(*std::move(group)) : std::nullopt;
}

std::optional<Cgroup> LocalHost::GroupOf(const std::string& node,
                                         const NodeLauncher::Running& life) const {
  return life.grouped ? GroupOf(node, life.start) : std::nullopt;
}

absl::Status LocalHost::SetLimits(const std::string& node, const Resources& limits) {
  MUSTER_ASSIGN_OR_RETURN(const NodeLauncher::Running* const life, launcher_.Look(node));
  std::optional<double>& cpus = known_[node].cpus;
  std::optional<Cgroup> group = GroupOf(node, *life);
  // If a limit on CPU was ignored at the start, it is ignored again; only a different one is
  // refused. For a found node, the first limit repeats the one that the node has.
  const bool other_cpus = limits.cpus != cpus.value_or(limits.cpus);
  if (limits.cpus > 0 && other_cpus && !(group.has_value() && group->has_cpu())) {
    return absl::FailedPreconditionError(
        fmt::format("{}: its CPU cannot be limited: {}", node,
                    limits_remark_.empty() ? "it is not in its control group" : limits_remark_));
  }
  if (group.has_value()) {
    MUSTER_RETURN_IF_ERROR(group->SetLimits(ToLimits(limits)));
    cpus = limits.cpus;
    return absl::OkStatus();
  }
  if (limits.memory_bytes > 0 && life->supervisor_pid > 0) {
    const uint64_t used = ReadTreeMemory(life->supervisor_pid);
    if (used > limits.memory_bytes) {
      return absl::FailedPreconditionError(
          fmt::format("{}: a memory limit of {} bytes is below the {} bytes in use", node,
                      limits.memory_bytes, used));
    }
  }
  launcher_.LimitMemory(node, limits.memory_bytes);
  cpus = limits.cpus;
  return absl::OkStatus();
}

NodeUsage UsageOf(const CgroupUsage& group,
                  const std::function<std::chrono::microseconds()>& tree_cpu) {
  NodeUsage usage = group;
  if (!usage.cpu.has_value()) usage.cpu = tree_cpu();
  return usage;
}

absl::StatusOr<NodeUsage> LocalHost::Usage(const std::string& node) {
  MUSTER_ASSIGN_OR_RETURN(const NodeLauncher::Running* const life, launcher_.Look(node));
  if (const std::optional<Cgroup> group = GroupOf(node, *life); group.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const CgroupUsage usage, group->ReadUsage());
    if (usage.cpu.has_value() || life->supervisor_pid != 0) {
      return UsageOf(usage, [life] { return ReadTreeUsage(life->supervisor_pid).cpu; });
    }
  }
  if (life->supervisor_pid == 0) {
    return absl::UnavailableError(fmt::format("{} has not reported yet", node));
  }
  const TreeUsage usage = ReadTreeUsage(life->supervisor_pid);
  uint64_t& peak = known_[node].memory_peak_bytes;
  peak = std::max(peak, usage.memory_bytes);
  return NodeUsage{.cpu = usage.cpu,
                   .memory_bytes = usage.memory_bytes,
                   .memory_peak_bytes = peak,
                   .memory_limit_bytes = life->memory_limit_bytes};
}

absl::StatusOr<NodeUsage> LocalHost::UsageOfProcess(uint64_t pid) {
  MUSTER_ASSIGN_OR_RETURN(const TreeUsage usage, ReadProcessUsage(static_cast<pid_t>(pid)));
  NodeUsage own;
  own.cpu = usage.cpu;
  own.memory_bytes = usage.memory_bytes;
  return own;
}

void LocalHost::Complete(const SuperviseReport& state, NodeExited* exit) const {
  const NodeRole role = WorkerNumber(exit->node) ? NodeRole::kWorker : NodeRole::kServer;
  exit->slot = ReadSlot(options_.command_of(exit->node, role).slot_file);
  // If the supervising process died without a report, the last value that was read counts.
  const auto known = known_.find(exit->node);
  if (exit->memory_peak_bytes == 0 && known != known_.end()) {
    exit->memory_peak_bytes = known->second.memory_peak_bytes;
  }
  const std::optional<Cgroup> group =
      state.grouped != 0 ? GroupOf(exit->node, state.start) : std::nullopt;
  if (!group.has_value()) return;
  const absl::StatusOr<CgroupUsage> usage = group->ReadUsage();
  if (!usage.ok()) return;
  // Version 1 kills only one of several processes, so the command itself may end with another
  // status.
  const bool may_be = state.signal == SIGKILL || Classify(exit->exit) == ExitKind::kProgram;
  if (may_be) exit->memory_kill = KillOf(*usage);
  if (exit->memory_kill != MemoryKill::kNone && state.code == kKilledBelowShell) {
    exit->exit = {.signal = SIGKILL};
  }
  exit->memory_peak_bytes = usage->memory_peak_bytes;
  exit->memory_limit_bytes = usage->memory_limit_bytes;
}

std::vector<HostReport> LocalHost::TakeReports() {
  std::vector<HostReport> reports;
  for (LaunchReport& report : launcher_.TakeReports()) {
    std::visit([&reports](auto& each) { reports.push_back(std::move(each)); }, report);
  }
  return reports;
}

absl::StatusOr<LogPiece> LocalHost::ReadLog(const std::string& node,
                                            const LogQuestion& question) const {
  return muster::ReadLog(launcher_.LogPath(node), question);
}

void LocalHost::EndRun() {
  if (groups_.backend() == CgroupBackend::kNone) return;
  if (const absl::Status removed = groups_.Remove(); !removed.ok()) {
    Log(LogLevel::kWarning, "{}", Message(removed));
  }
}

}  // namespace muster
