#include "host/processes/tree_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/usage/kernel_text.h"
#include "host/processes/process_tree.h"

namespace muster {
namespace {

constexpr uint64_t kStatusMax = 1 << 16;  // bytes of text

/// The sum of the lines "key: 123 kB", in bytes. None if the process is gone or may not be read, or
/// if a line is missing.
std::optional<uint64_t> ReadSum(pid_t pid, std::string_view file,
                                std::initializer_list<std::string_view> keys) {
  const absl::StatusOr<std::string> text =
      ReadFile(fmt::format("/proc/{}/{}", pid, file), kStatusMax);
  if (!text.ok()) return std::nullopt;
  uint64_t sum = 0;
  for (const std::string_view key : keys) {
    const std::optional<uint64_t> kibibytes = FindNumber(*text, key);
    if (!kibibytes.has_value()) return std::nullopt;
    sum += *kibibytes << 10;
  }
  return sum;
}

uint64_t Resident(pid_t pid) {
  return ReadSum(pid, "status", {"RssAnon", "RssShmem"}).value_or(0);
}

std::vector<pid_t> ProcessesBut(pid_t root, pid_t but) {
  std::vector<pid_t> pids = ProcessesBelow(root);
  std::erase(pids, but);
  return pids;
}

}  // namespace

TreeUsage ReadTreeUsage(pid_t root, pid_t but) {
  TreeUsage usage;
  for (const pid_t pid : ProcessesBut(root, but)) {
    usage.memory_bytes += Resident(pid);
    const std::optional<ProcessStat> stat = ReadStat(pid);
    if (stat.has_value()) usage.cpu += stat->cpu + stat->ended_children_cpu;
  }
  // Processes whose parents have ended have become its children.
  const std::optional<ProcessStat> stat = ReadStat(root);
  if (stat.has_value()) usage.cpu += stat->ended_children_cpu;
  return usage;
}

absl::StatusOr<TreeUsage> ReadProcessUsage(pid_t pid) {
  const std::optional<ProcessStat> stat = ReadStat(pid);
  if (!stat.has_value()) return absl::NotFoundError(fmt::format("there is no process {}", pid));
  return TreeUsage{.cpu = stat->cpu, .memory_bytes = Resident(pid)};
}

uint64_t ReadTreeMemory(pid_t root, pid_t but) {
  const std::vector<pid_t> pids = ProcessesBut(root, but);
  uint64_t bytes = 0;
  for (const pid_t pid : pids) {
    // For a single process, the proportional size equals the resident size.
    const std::optional<uint64_t> proportional =
        pids.size() > 1 ? ReadSum(pid, "smaps_rollup", {"Pss_Anon", "Pss_Shmem"}) : std::nullopt;
    bytes += proportional.has_value() ? *proportional : Resident(pid);
  }
  return bytes;
}

bool MemoryWatch::IsExceeded(pid_t root, pid_t but) {
  if (limit_bytes_ == 0) return false;
  // The sum is cheap, and never below the real usage.
  uint64_t bytes = ReadTreeUsage(root, but).memory_bytes;
  if (bytes > limit_bytes_) bytes = ReadTreeMemory(root, but);
  peak_bytes_ = std::max(peak_bytes_, bytes);
  return bytes > limit_bytes_;
}

}  // namespace muster
