#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// Fields of /proc/<pid>/stat.
struct ProcessStat {
  char state = '?';  // 'Z': it has ended
  pid_t parent = 0;
  std::chrono::microseconds cpu{0};
  /// Includes children that have ended and were waited for, and their children.
  std::chrono::microseconds ended_children_cpu{0};
};
/// None if there is no such process.
std::optional<ProcessStat> ReadStat(pid_t pid);

/// What a process was started with; an entry of the environment is "NAME=value". None if it has
/// ended, or may not be looked at.
std::vector<std::string> CommandLineOf(pid_t pid);
std::vector<std::string> EnvironmentOf(pid_t pid);

/// The processes that descend from `root`, without it, parents before their children. Reads no
/// others than these, where the kernel lists children.
std::vector<pid_t> ProcessesBelow(pid_t root);

/// The processes that the functions below spare, together with all their descendants.
struct Spared {
  std::vector<pid_t> pids;
  /// Spares every `muster supervise` with --life-fd, because its node does not end with the process
  /// that started it.
  bool supervisors = false;
  /// An entry "NAME=value" in the environment of every process that this run started. Processes
  /// without it are spared: a shell that became this process by `exec` may have started them, or
  /// somebody in the container whose process 1 this is. If "", none are spared for this reason.
  std::string mark;
};

/// The pids of all living descendants of the calling process that are not spared, from one scan of
/// /proc. Zombies are left out.
std::vector<pid_t> Descendants(const Spared& spared);

/// Kills (SIGKILL) and reaps descendants that are not spared, until a scan finds none. Requires:
/// the caller is a sub-reaper, so that a grandchild whose parent dies becomes its child, in
/// whatever session it is. Children in `spared.pids` are not reaped.
void KillDescendants(const Spared& spared);

/// Once, and without waiting, reaps children that have ended and kills those that are not spared.
/// Children of a killed process are found at the next call. Children in `spared.pids` are not
/// touched. It costs little, because it reads only the children.
void SweepChildren(const Spared& spared);

/// The processes of this run: an ancestor and all its descendants. The ancestor is the topmost one
/// in an unbroken line that runs the same program as the calling process.
std::vector<pid_t> RunFamily();

/// True if the process is a `muster supervise` with --life-fd.
bool IsSupervisor(pid_t pid);

}  // namespace muster
