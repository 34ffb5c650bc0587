#include "host/processes/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "base/usage/kernel_text.h"
#include "host/processes/cgroup_files.h"
#include "host/processes/cgroup_mounts.h"

namespace muster {
namespace {

constexpr uint64_t kTextMax = 1 << 20;

uint64_t TotalMemory(const std::string& root) {
  const std::string text = ReadFile(root + "/proc/meminfo", kTextMax).value_or("");
  return KeyedNumber(text, "MemTotal") * 1024;
}

/// None if they cannot be read.
cpu_set_t OwnProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
  return set;
}

/// A line of /proc/stat: "cpu3 4705 150 1120 16250 520 ...". The numbers are ticks: user, nice,
/// system, idle, waiting for a disk with nothing else to do, and more.
struct ProcessorTimes {
  size_t number = 0;
  uint64_t idle = 0;
  bool counted = false;  // false for the table of zeros that some sandboxes show
};
std::optional<ProcessorTimes> ParseProcessor(const std::string& line) {
  constexpr std::string_view kName = "cpu";
  if (!line.starts_with(kName)) return std::nullopt;
  std::istringstream fields(line.substr(kName.size()));
  ProcessorTimes times;
  uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
  // The line with the sum has no processor number.
  if (line.starts_with("cpu ")) return std::nullopt;
  if (!(fields >> times.number >> user >> nice >> system >> idle >> waiting)) return std::nullopt;
  times.idle = idle + waiting;
  times.counted = user + nice + system + times.idle > 0;
  return times;
}

/// Returns 0 if there is no quota.
double QuotaOf(const std::string& folder) {
  // Version 2 has "QUOTA PERIOD" or "max PERIOD" in one file.
  const std::string both = ReadFile(folder + "/cpu.max", kTextMax).value_or("");
  if (!both.empty()) {
    const uint64_t period = FirstNumber(std::string_view(both).substr(both.find(' ') + 1));
    if (both.starts_with("max") || period == 0) return 0;
    return static_cast<double>(FirstNumber(both)) / static_cast<double>(period);
  }
  const std::string quota = ReadFile(folder + "/cpu.cfs_quota_us", kTextMax).value_or("-1");
  const uint64_t period =
      FirstNumber(ReadFile(folder + "/cpu.cfs_period_us", kTextMax).value_or(""));
  if (quota.starts_with("-") || period == 0) return 0;
  return static_cast<double>(FirstNumber(quota)) / static_cast<double>(period);
}

uint64_t MemoryLimitOf(const std::string& folder) {
  for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
    const uint64_t limit = ReadNumber(folder + file).value_or(kNoLimit);
    if (limit < kNoLimit) return limit;
  }
  return 0;
}

/// Calls it for the groups of this process in every hierarchy, and for those above them.
void ForEachOwnGroup(const std::string& root,
                     const std::function<void(const std::string& folder)>& visit) {
  const std::string mounts = ReadFile(root + "/proc/self/mountinfo", kTextMax).value_or("");
  const std::map<std::string, std::string> own =
      ParseOwnCgroups(ReadFile(root + "/proc/self/cgroup", kTextMax).value_or(""));
  for (const CgroupMount& mount : ParseCgroupMounts(mounts)) {
    for (const auto& [controller, group] : own) {
      const bool here = mount.v2 ? controller.empty()
                                 : std::find(mount.options.begin(), mount.options.end(),
                                             controller) != mount.options.end();
      if (!here) continue;
      std::string folder = CgroupFolder(mount, group);
      while (folder.size() >= mount.point.size()) {
        visit(root + folder);
        const size_t slash = folder.rfind('/');
        if (slash == std::string::npos || slash == 0) break;
        folder.resize(slash);
      }
    }
  }
}

}  // namespace

Resources MachineResources(const std::string& root) {
  const cpu_set_t own = OwnProcessors();
  Resources machine{.cpus = static_cast<double>(CPU_COUNT(&own)),
                    .memory_bytes = TotalMemory(root)};
  ForEachOwnGroup(root, [&machine](const std::string& folder) {
    const uint64_t memory = MemoryLimitOf(folder);
    if (memory > 0) machine.memory_bytes = std::min(machine.memory_bytes, memory);
    const double cpus = QuotaOf(folder);
    if (cpus > 0) machine.cpus = std::min(machine.cpus, cpus);
  });
  return machine;
}

std::optional<std::chrono::microseconds> MachineIdle(const std::string& root) {
  const std::string text = ReadFile(root + "/proc/stat", kTextMax).value_or("");
  const cpu_set_t own = OwnProcessors();
  uint64_t ticks = 0;
  bool counted = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<ProcessorTimes> times = ParseProcessor(line);
    if (!times.has_value() || times->number >= CPU_SETSIZE) continue;
    if (!CPU_ISSET(times->number, &own)) continue;
    counted |= times->counted;
    ticks += times->idle;
  }
  if (!counted) return std::nullopt;
  return std::chrono::microseconds(ticks * 1'000'000 /
                                   static_cast<uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace muster
