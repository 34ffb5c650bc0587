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
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

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

/// Whether a process is spared, asked once for each.
class SparedSet {
 public:
  explicit SparedSet(const Spared& spared) : spared_(spared) {}
  bool Contains(pid_t pid) {
    if (std::find(spared_.pids.begin(), spared_.pids.end(), pid) != spared_.pids.end()) return true;
    if (!spared_.supervisors) return false;
    const auto [known, added] = supervisors_.try_emplace(pid, false);
    if (added) known->second = IsSupervisor(pid);
    return known->second;
  }

 private:
  const Spared& spared_;
  std::map<pid_t, bool> supervisors_;
};

/// From `pid` up to the child of this process that it descends from; empty when it does not.
std::vector<pid_t> Lineage(const std::map<pid_t, ProcessStat>& processes, pid_t pid) {
  std::vector<pid_t> lineage;
  // A chain longer than the number of processes would be a cycle made by pid reuse.
  for (pid_t ancestor = pid; lineage.size() <= processes.size();) {
    const auto entry = processes.find(ancestor);
    if (entry == processes.end()) break;
    lineage.push_back(ancestor);
    ancestor = entry->second.parent;
    if (ancestor == ::getpid()) return lineage;
  }
  return {};
}

std::map<pid_t, pid_t> DescendantsWithParents(const Spared& spared) {
  const std::map<pid_t, ProcessStat> processes = AllProcesses();
  SparedSet left_alone(spared);
  std::map<pid_t, pid_t> found;
  for (const auto& [pid, stat] : processes) {
    if (stat.state == 'Z' || stat.state == 'X') continue;
    const std::vector<pid_t> lineage = Lineage(processes, pid);
    if (lineage.empty() || std::any_of(lineage.begin(), lineage.end(), [&](pid_t ancestor) {
          return left_alone.Contains(ancestor);
        })) {
      continue;
    }
    found[pid] = stat.parent;
  }
  return found;
}

/// The children of one thread as the kernel lists them; false where it does not.
bool ReadChildren(const std::string& path, std::vector<pid_t>* children) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  int pid = 0;
  while (std::fscanf(file, "%d", &pid) == 1) children->push_back(pid);
  std::fclose(file);
  return true;
}

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  bool listed = false;
  DIR* folder = ::opendir("/proc/self/task");
  if (folder != nullptr) {
    absl::Cleanup close_folder = [folder] { ::closedir(folder); };
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_name[0] == '.') continue;
      listed |=
          ReadChildren("/proc/self/task/" + std::string(entry->d_name) + "/children", &children);
    }
  }
  if (listed) return children;
  // A kernel without CONFIG_PROC_CHILDREN.
  for (const auto& [pid, stat] : AllProcesses()) {
    if (stat.parent == ::getpid()) children.push_back(pid);
  }
  return children;
}

/// Reaps the child if it has ended; false when it runs on.
bool Reap(pid_t pid) {
  pid_t got;
  do {
    got = ::waitpid(pid, nullptr, WNOHANG);
  } while (got < 0 && errno == EINTR);
  return got != 0;
}

/// Reaps ended children; true when children are left that are not spared.
bool ReapChildren(const Spared& spared) {
  SparedSet left_alone(spared);
  bool left = false;
  for (const pid_t pid : Children()) {
    if (std::find(spared.pids.begin(), spared.pids.end(), pid) != spared.pids.end()) continue;
    if (!Reap(pid) && !left_alone.Contains(pid)) left = true;
  }
  return left;
}

}  // namespace

bool IsSupervisor(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  absl::Cleanup close_file = [file] { std::fclose(file); };
  char text[8'192];  // the flags come before the command
  const size_t size = std::fread(text, 1, sizeof(text), file);
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < size;) {
    const std::string_view word(text + begin, ::strnlen(text + begin, size - begin));
    begin += word.size() + 1;
    if (word == "--" || (words.size() == 1 && word != "supervise")) break;
    words.push_back(word);
  }
  const auto flag = std::find(words.begin(), words.end(), "--life-fd");
  return flag != words.end() && std::next(flag) != words.end() && *std::next(flag) != "-1";
}

std::vector<pid_t> Descendants(const Spared& spared) {
  std::vector<pid_t> pids;
  for (const auto& [pid, parent] : DescendantsWithParents(spared)) pids.push_back(pid);
  return pids;
}

void KillDescendants(const Spared& spared) {
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

void SweepChildren(const Spared& spared) {
  SparedSet left_alone(spared);
  for (const pid_t pid : Children()) {
    if (std::find(spared.pids.begin(), spared.pids.end(), pid) != spared.pids.end()) continue;
    if (!Reap(pid) && !left_alone.Contains(pid)) KillIfStill(pid, ::getpid());
  }
}

}  // namespace muster
