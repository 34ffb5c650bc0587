#include "base/usage/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/usage/kernel_text.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kInterval{1};
constexpr uint64_t kFileMax = 1 << 20;
/// No process has this many ancestors.
constexpr int kParentsMax = 64;

std::string Contents(const std::string& path) {
  return ReadFile(path, kFileMax).value_or("");
}

std::vector<uint64_t> NumbersIn(const std::string& lines) {
  std::vector<uint64_t> numbers;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    numbers.push_back(FirstNumber(std::string_view(lines).substr(begin, end - begin)));
    begin = end + 1;
  }
  return numbers;
}

uint64_t Micros(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

ProcessUsageMeter::ProcessUsageMeter(std::string proc, std::string groups)
    : proc_(std::move(proc)), groups_(std::move(groups)) {}

const ProcessUsage& ProcessUsageMeter::Read(TimePoint now) {
  if (read_at_.has_value() && now - *read_at_ < kInterval) return usage_;
  read_at_ = now;
  if (!own_group_.has_value()) own_group_ = HasOwnGroup();
  const uint64_t peak = usage_.memory_peak_bytes;
  usage_ = *own_group_ ? OfGroup() : OfProcess();
  usage_.memory_peak_bytes = std::max({usage_.memory_peak_bytes, usage_.memory_bytes, peak});
  return usage_;
}

bool ProcessUsageMeter::HasOwnGroup() const {
  // A container sees its own group as the root of all. The root of a machine counts no memory.
  if (RestOfLine(Contents(proc_ + "/self/cgroup"), "0::") != "/") return false;
  if (Contents(groups_ + "/memory.current").empty()) return false;
  const auto self = static_cast<uint64_t>(::getpid());
  std::set<uint64_t> line = {self};  // this process and its parents
  std::optional<uint64_t> parent = ParentOf(self);
  for (int i = 0; i < kParentsMax && parent.value_or(0) > 0; ++i) {
    line.insert(*parent);
    parent = ParentOf(*parent);
  }
  const auto is_child = [&](uint64_t pid) {
    for (int i = 0; i < kParentsMax; ++i) {
      if (pid == self) return true;
      if (pid == 0) return false;  // it cannot be seen from here
      const std::optional<uint64_t> above = ParentOf(pid);
      // A process that has ended meanwhile is not a stranger either.
      if (!above.has_value()) return i == 0;
      pid = *above;
    }
    return false;
  };
  const std::vector<uint64_t> members = NumbersIn(Contents(groups_ + "/cgroup.procs"));
  return std::ranges::all_of(members,
                             [&](uint64_t pid) { return line.contains(pid) || is_child(pid); });
}

std::optional<uint64_t> ProcessUsageMeter::ParentOf(uint64_t pid) const {
  const std::string stat = Contents(proc_ + "/" + std::to_string(pid) + "/stat");
  // The file is "17 (a name) S 16 ...". The name may contain any characters.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  return FirstNumber(std::string_view(stat).substr(name_end));
}

ProcessUsage ProcessUsageMeter::OfGroup() const {
  const std::string cpu = Contents(groups_ + "/cpu.stat");
  const std::string stat = Contents(groups_ + "/memory.stat");
  const uint64_t used = FirstNumber(Contents(groups_ + "/memory.current"));
  return {.cpu_us = KeyedNumber(cpu, "usage_usec"),
          .throttled_us = KeyedNumber(cpu, "throttled_usec"),
          .memory_bytes = used - std::min(DroppableBytes(stat), used),
          .memory_peak_bytes = FirstNumber(Contents(groups_ + "/memory.peak")),
          .memory_limit_bytes = FirstNumber(Contents(groups_ + "/memory.max"))};
}

ProcessUsage ProcessUsageMeter::OfProcess() const {
  constexpr uint64_t kKiB = 1'024;
  const std::string status = Contents(proc_ + "/self/status");
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return {.cpu_us = Micros(used.ru_utime) + Micros(used.ru_stime),
          // Files that are mapped can be dropped; memory that is shared with a peer cannot.
          .memory_bytes = kKiB * (KeyedNumber(status, "RssAnon") + KeyedNumber(status, "RssShmem")),
          .memory_peak_bytes = kKiB * KeyedNumber(status, "VmHWM")};
}

}  // namespace muster
