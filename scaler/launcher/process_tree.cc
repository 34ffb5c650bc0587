#include "scaler/launcher/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "scaler/launcher/pidfd.h"

namespace muster {
namespace {

struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
};

std::optional<ProcessStat> ReadStat(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char buffer[1024];
  const ssize_t got = ::read(fd, buffer, sizeof(buffer) - 1);
  ::close(fd);
  if (got <= 0) return std::nullopt;
  buffer[got] = '\0';
  // "pid (name) state ppid ...": the name may hold anything, so count from its last bracket.
  const char* after_name = ::strrchr(buffer, ')');
  ProcessStat stat;
  if (after_name == nullptr ||
      std::sscanf(after_name + 1, " %c %d", &stat.state, &stat.parent) != 2) {
    return std::nullopt;
  }
  return stat;
}

std::map<pid_t, ProcessStat> AllProcesses() {
  std::map<pid_t, ProcessStat> processes;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return processes;
  absl::Cleanup close_folder = [folder] { ::closedir(folder); };
  while (const dirent* entry = ::readdir(folder)) {
    char* end = nullptr;
    const long pid = std::strtol(entry->d_name, &end, 10);
    if (pid <= 0 || *end != '\0') continue;
    const std::optional<ProcessStat> stat = ReadStat(static_cast<pid_t>(pid));
    if (stat.has_value()) processes[static_cast<pid_t>(pid)] = *stat;
  }
  return processes;
}

bool Contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

/// Kills through a pidfd after looking again, so that a pid that was given to somebody else between
/// the scan and now is not hit.
void KillIfStill(pid_t pid, pid_t parent) {
  const int fd = ::pidfd_open(pid, 0);
  if (fd < 0) return;
  const std::optional<ProcessStat> stat = ReadStat(pid);
  // A parent that died in between has handed the process to us.
  if (stat.has_value() && (stat->parent == parent || stat->parent == ::getpid())) {
    ::pidfd_send_signal(fd, SIGKILL, nullptr, 0);
  }
  ::close(fd);
}

std::map<pid_t, pid_t> DescendantsWithParents(const std::vector<pid_t>& spared) {
  const std::map<pid_t, ProcessStat> processes = AllProcesses();
  std::map<pid_t, pid_t> found;
  for (const auto& [pid, stat] : processes) {
    if (stat.state == 'Z' || stat.state == 'X') continue;
    // A chain longer than the number of processes would be a cycle made by pid reuse.
    pid_t ancestor = pid;
    for (size_t steps = 0; steps <= processes.size(); ++steps) {
      if (Contains(spared, ancestor)) break;
      const auto entry = processes.find(ancestor);
      if (entry == processes.end()) break;
      ancestor = entry->second.parent;
      if (ancestor == ::getpid()) {
        found[pid] = stat.parent;
        break;
      }
    }
  }
  return found;
}

/// Reaps ended children; true when children other than `spared` are left.
bool ReapChildren(const std::vector<pid_t>& spared) {
  if (spared.empty()) {
    while (true) {
      const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
      if (pid > 0 || (pid < 0 && errno == EINTR)) continue;
      return pid == 0;
    }
  }
  bool left = false;
  for (const auto& [pid, stat] : AllProcesses()) {
    if (stat.parent != ::getpid() || Contains(spared, pid)) continue;
    if (::waitpid(pid, nullptr, WNOHANG) == 0) left = true;
  }
  return left;
}

}  // namespace

std::vector<pid_t> Descendants(const std::vector<pid_t>& spared) {
  std::vector<pid_t> pids;
  for (const auto& [pid, parent] : DescendantsWithParents(spared)) pids.push_back(pid);
  return pids;
}

void KillDescendants(const std::vector<pid_t>& spared) {
  std::chrono::milliseconds pause{1};
  while (true) {
    const std::map<pid_t, pid_t> found = DescendantsWithParents(spared);
    for (const auto& [pid, parent] : found) KillIfStill(pid, parent);
    const bool left = ReapChildren(spared);
    if (found.empty() && !left) return;
    // The kernel needs a moment to end a killed process; there is nothing to wait on for a
    // grandchild.
    SleepFor(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds{50});
  }
}

}  // namespace muster
