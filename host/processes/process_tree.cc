#include "host/processes/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"

namespace muster {
namespace {

/// More than the kernel allows.
constexpr uint64_t kWordsMax = 16 << 20;  // bytes of text

std::vector<std::string> ReadWords(pid_t pid, std::string_view file) {
  const std::string text = ReadFile(fmt::format("/proc/{}/{}", pid, file), kWordsMax).value_or("");
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
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

/// Kills through a pidfd, after checking the process again. So a process that has got the pid since
/// the scan is not killed.
void KillIfStill(pid_t pid, pid_t parent) {
  const OwnedFd fd = OpenProcess(pid);
  if (fd.get() < 0) return;
  const std::optional<ProcessStat> stat = ReadStat(pid);
  // If its parent died in between, the process is now our child.
  if (stat.has_value() && (stat->parent == parent || stat->parent == ::getpid())) {
    SignalProcess(fd, SIGKILL);
  }
}

bool HasWord(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Decides whether a process is spared. Called once for each process.
class SparedSet {
 public:
  explicit SparedSet(const Spared& spared) : spared_(spared) {}
  bool Contains(pid_t pid) {
    if (std::find(spared_.pids.begin(), spared_.pids.end(), pid) != spared_.pids.end()) return true;
    const auto [known, added] = others_.try_emplace(pid, false);
    if (added) {
      known->second = (spared_.supervisors && IsSupervisor(pid)) ||
                      (!spared_.mark.empty() && !HasWord(EnvironmentOf(pid), spared_.mark));
    }
    return known->second;
  }

 private:
  const Spared& spared_;
  std::map<pid_t, bool> others_;
};

/// The program that a process runs; "" if it cannot be read.
std::string Program(pid_t pid) {
  char path[64], target[4096];
  std::snprintf(path, sizeof(path), "/proc/%d/exe", pid);
  const ssize_t size = ::readlink(path, target, sizeof(target));
  return {target, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

/// The processes from `pid` up to the child of `root` from which it descends. Empty if it does not
/// descend from `root`.
std::vector<pid_t> Lineage(const std::map<pid_t, ProcessStat>& processes, pid_t pid, pid_t root) {
  std::vector<pid_t> lineage;
  // A chain longer than the number of processes would be a cycle made by pid reuse.
  for (pid_t ancestor = pid; lineage.size() <= processes.size();) {
    const auto entry = processes.find(ancestor);
    if (entry == processes.end()) break;
    lineage.push_back(ancestor);
    ancestor = entry->second.parent;
    if (ancestor == root) return lineage;
  }
  return {};
}

std::map<pid_t, pid_t> DescendantsWithParents(const Spared& spared) {
  const std::map<pid_t, ProcessStat> processes = AllProcesses();
  SparedSet left_alone(spared);
  std::map<pid_t, pid_t> found;
  for (const auto& [pid, stat] : processes) {
    if (stat.state == 'Z' || stat.state == 'X') continue;
    const std::vector<pid_t> lineage = Lineage(processes, pid, ::getpid());
    if (lineage.empty() || std::any_of(lineage.begin(), lineage.end(), [&](pid_t ancestor) {
          return left_alone.Contains(ancestor);
        })) {
      continue;
    }
    found[pid] = stat.parent;
  }
  return found;
}

/// Reads the children of one thread from the kernel's list. False if the kernel has no such list.
bool ReadChildren(const std::string& path, std::vector<pid_t>* children) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  int pid = 0;
  while (std::fscanf(file, "%d", &pid) == 1) children->push_back(pid);
  std::fclose(file);
  return true;
}

std::vector<pid_t> Children(pid_t parent) {
  std::vector<pid_t> children;
  bool listed = false;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  DIR* folder = ::opendir(tasks.c_str());
  if (folder != nullptr) {
    absl::Cleanup close_folder = [folder] { ::closedir(folder); };
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_name[0] == '.') continue;
      listed |= ReadChildren(tasks + "/" + entry->d_name + "/children", &children);
    }
  }
  if (listed || folder == nullptr) return children;
  // This kernel lacks CONFIG_PROC_CHILDREN, so all processes are read.
  for (const auto& [pid, stat] : AllProcesses()) {
    if (stat.parent == parent) children.push_back(pid);
  }
  return children;
}

/// Reaps the child if it has ended. False if it still runs.
bool Reap(pid_t pid) {
  pid_t got;
  do {
    got = ::waitpid(pid, nullptr, WNOHANG);
  } while (got < 0 && errno == EINTR);
  return got != 0;
}

/// Reaps ended children. True if there are still children that are not spared.
bool ReapChildren(const Spared& spared) {
  SparedSet left_alone(spared);
  bool left = false;
  for (const pid_t pid : Children(::getpid())) {
    if (std::find(spared.pids.begin(), spared.pids.end(), pid) != spared.pids.end()) continue;
    if (!Reap(pid) && !left_alone.Contains(pid)) left = true;
  }
  return left;
}

}  // namespace

std::optional<ProcessStat> ReadStat(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const OwnedFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return std::nullopt;
  char buffer[1024];
  const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer) - 1);
  if (got <= 0) return std::nullopt;
  buffer[got] = '\0';
  // The line is "pid (name) state ppid ...". The name may contain anything, so the fields are
  // counted from the last bracket.
  const char* after_name = ::strrchr(buffer, ')');
  ProcessStat stat;
  uint64_t user = 0, system = 0, children_user = 0, children_system = 0;
  if (after_name == nullptr || std::sscanf(after_name + 1,
                                           " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
                                           " %" SCNu64 " %" SCNu64 " %" SCNu64,
                                           &stat.state, &stat.parent, &user, &system,
                                           &children_user, &children_system) != 6) {
    return std::nullopt;
  }
  const auto tick = std::chrono::microseconds(1'000'000 / ::sysconf(_SC_CLK_TCK));
  stat.cpu = tick * (user + system);
  stat.ended_children_cpu = tick * (children_user + children_system);
  return stat;
}

std::vector<std::string> CommandLineOf(pid_t pid) {
  return ReadWords(pid, "cmdline");
}

std::vector<std::string> EnvironmentOf(pid_t pid) {
  return ReadWords(pid, "environ");
}

std::vector<pid_t> ProcessesBelow(pid_t root) {
  std::vector<pid_t> found = Children(root);
  for (size_t i = 0; i < found.size(); ++i) {
    for (const pid_t child : Children(found[i])) {
      // A process that got another parent meanwhile is found twice.
      if (std::find(found.begin(), found.end(), child) == found.end()) found.push_back(child);
    }
  }
  return found;
}

std::vector<pid_t> RunFamily() {
  const std::map<pid_t, ProcessStat> processes = AllProcesses();
  const std::string own = Program(::getpid());
  pid_t top = ::getpid();
  for (pid_t parent = ::getppid(); !own.empty() && Program(parent) == own;) {
    top = parent;
    const auto entry = processes.find(parent);
    if (entry == processes.end()) break;
    parent = entry->second.parent;
  }
  std::vector<pid_t> family = {top};
  for (const auto& [pid, stat] : processes) {
    if (!Lineage(processes, pid, top).empty()) family.push_back(pid);
  }
  return family;
}

bool IsSupervisor(pid_t pid) {
  const std::vector<std::string> words = CommandLineOf(pid);
  if (words.size() < 2 || words[1] != "supervise") return false;
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto flag = std::find(words.begin(), end, "--life-fd");
  return flag != end && std::next(flag) != end && *std::next(flag) != "-1";
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
    // The kernel needs a moment to end a killed process. For a grandchild, there is nothing to wait
    // on, so this sleeps.
    SleepFor(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds{50});
  }
}

void SweepChildren(const Spared& spared) {
  SparedSet left_alone(spared);
  for (const pid_t pid : Children(::getpid())) {
    if (std::find(spared.pids.begin(), spared.pids.end(), pid) != spared.pids.end()) continue;
    if (!Reap(pid) && !left_alone.Contains(pid)) KillIfStill(pid, ::getpid());
  }
}

}  // namespace muster
