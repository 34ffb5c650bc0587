#include "host/processes/cgroup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/usage/kernel_text.h"
#include "host/processes/cgroup_files.h"
#include "host/processes/cgroup_mounts.h"

namespace muster {
namespace {

constexpr uint64_t kGroupFileMax = 1 << 20;
/// The kernel's default period in microseconds, and the shortest quota that the kernel accepts.
constexpr int64_t kCpuPeriodUs = 100'000;
constexpr int64_t kCpuQuotaMinUs = 1'000;
/// The kernel charges pages in batches of this size. A group that hit its limit is at most this far
/// below it.
constexpr uint64_t kChargeBytes = 256 << 10;
/// The kernel drops a group's page cache before it kills for the group's own limit. So if more than
/// this part of the limit is page cache, that limit was not the reason. (Some cache returns when
/// another process of the group continues.)
constexpr uint64_t kCacheLeft = 4;

bool IsFull(uint64_t peak, uint64_t limit) {
  return limit < kNoLimit && peak + kChargeBytes >= limit;
}

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

/// Reads "some avg10=1.25 avg60=...". None if there is no such file or line.
std::optional<double> ReadPressure(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kGroupFileMax);
  constexpr std::string_view kBegin = "some avg10=";
  if (!text.ok() || !text->starts_with(kBegin)) return std::nullopt;
  return std::strtod(text->c_str() + kBegin.size(), nullptr);
}

/// Version 2 counts CPU time in every group, whatever controllers the group has. None if the file
/// is missing.
std::optional<std::chrono::microseconds> ReadCpuTime(const std::string& group) {
  const absl::StatusOr<std::string> stat = ReadFile(group + "/cpu.stat", kGroupFileMax);
  const std::optional<uint64_t> used = FindNumber(stat.value_or(""), "usage_usec");
  if (!used.has_value()) return std::nullopt;
  return std::chrono::microseconds(*used);
}

}  // namespace

int JoinCgroup(const int* fds, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    // "0" means the process that writes.
    while (::write(fds[i], "0", 1) < 0) {
      if (errno != EINTR) return errno;
    }
  }
  return 0;
}

MemoryKill KillOf(const CgroupUsage& usage) {
  if (usage.oom_kills == 0) return MemoryKill::kNone;
  return usage.limit_reached ? MemoryKill::kKernel : MemoryKill::kMachine;
}

std::vector<std::string> Cgroup::Paths::Distinct() const {
  std::vector<std::string> paths;
  for (const std::string& path : {memory, cpu, cpuacct, unified}) {
    const bool known = std::find(paths.begin(), paths.end(), path) != paths.end();
    if (!path.empty() && !known) paths.push_back(path);
  }
  return paths;
}

absl::Status Cgroup::OpenToJoin() {
  for (const std::string& path : paths_.Distinct()) {
    const std::string procs = path + "/cgroup.procs";
    OwnedFd fd(::open(procs.c_str(), O_WRONLY | O_CLOEXEC));
    if (fd.get() < 0 || ::flock(fd.get(), LOCK_SH) != 0) {
      return ErrnoStatus(errno, fmt::format("cannot open {}", procs));
    }
    join_fds_.push_back(std::move(fd));
  }
  return absl::OkStatus();
}

std::vector<int> Cgroup::join_fds() const {
  std::vector<int> fds;
  for (const OwnedFd& fd : join_fds_) fds.push_back(fd.get());
  return fds;
}

absl::Status Cgroup::SetLimits(const CgroupLimits& limits) {
  if (!std::isfinite(limits.cpus) || limits.cpus < 0) {
    return absl::InvalidArgumentError(fmt::format("{} is not a number of cores", limits.cpus));
  }
  if (limits.memory_bytes > 0) {
    MUSTER_ASSIGN_OR_RETURN(const CgroupUsage usage, ReadUsage());
    if (usage.memory_bytes > limits.memory_bytes) {
      return absl::FailedPreconditionError(
          fmt::format("{}: a memory limit of {} bytes is below the {} bytes in use", paths_.memory,
                      limits.memory_bytes, usage.memory_bytes));
    }
  }
  // CPU comes first, because it may be refused (a quota above the parent's). Then nothing has
  // changed yet.
  MUSTER_RETURN_IF_ERROR(SetCpus(limits.cpus));
  return backend_ == CgroupBackend::kV1 ? SetMemoryV1(limits.memory_bytes)
                                        : SetMemoryV2(limits.memory_bytes);
}

absl::Status Cgroup::SetMemoryV1(uint64_t bytes) {
  const std::string limit = paths_.memory + "/memory.limit_in_bytes";
  // The limit on memory with swap exists only if the kernel accounts for swap.
  const std::string with_swap = paths_.memory + "/memory.memsw.limit_in_bytes";
  const std::string value = bytes == 0 ? "-1" : std::to_string(bytes);
  MUSTER_ASSIGN_OR_RETURN(const uint64_t now, ReadNumber(limit));
  // The first limit must never exceed the second, so the order of the two writes depends on the
  // direction.
  const bool raise = bytes == 0 || bytes > now;
  if (raise && Exists(with_swap)) MUSTER_RETURN_IF_ERROR(WriteControl(with_swap, value));
  MUSTER_RETURN_IF_ERROR(WriteControl(limit, value));
  if (!raise && Exists(with_swap)) MUSTER_RETURN_IF_ERROR(WriteControl(with_swap, value));
  // The peak is compared with the limit that was in force when the group reached it.
  was_full_ |= raise && IsFull(ReadPeak().value_or(0), now);
  return absl::OkStatus();
}

absl::Status Cgroup::SetMemoryV2(uint64_t bytes) const {
  // The kernel then kills all processes of the node together. A node that has lost only a child may
  // look alive but be useless.
  MUSTER_RETURN_IF_ERROR(WriteControl(paths_.memory + "/memory.oom.group", "1"));
  const std::string swap = paths_.memory + "/memory.swap.max";
  if (Exists(swap)) MUSTER_RETURN_IF_ERROR(WriteControl(swap, bytes == 0 ? "max" : "0"));
  return WriteControl(paths_.memory + "/memory.max", bytes == 0 ? "max" : std::to_string(bytes));
}

absl::Status Cgroup::SetCpus(double cpus) const {
  if (!has_cpu()) return absl::OkStatus();
  const auto quota =
      std::max(static_cast<int64_t>(std::min(cpus, 1e6) * static_cast<double>(kCpuPeriodUs)),
               kCpuQuotaMinUs);
  if (backend_ == CgroupBackend::kV2) {
    return WriteControl(paths_.cpu + "/cpu.max", cpus == 0
                                                     ? fmt::format("max {}", kCpuPeriodUs)
                                                     : fmt::format("{} {}", quota, kCpuPeriodUs));
  }
  MUSTER_RETURN_IF_ERROR(
      WriteControl(paths_.cpu + "/cpu.cfs_period_us", std::to_string(kCpuPeriodUs)));
  return WriteControl(paths_.cpu + "/cpu.cfs_quota_us", cpus == 0 ? "-1" : std::to_string(quota));
}

absl::StatusOr<CgroupUsage> Cgroup::ReadUsage() const {
  CgroupUsage usage;
  MUSTER_RETURN_IF_ERROR(ReadMemory(&usage));
  MUSTER_RETURN_IF_ERROR(ReadCpu(&usage));
  if (!paths_.unified.empty()) {
    usage.memory_pressure_percent = ReadPressure(paths_.unified + "/memory.pressure");
    usage.cpu_pressure_percent = ReadPressure(paths_.unified + "/cpu.pressure");
  }
  return usage;
}

absl::StatusOr<CgroupUsage> Cgroup::ReadOwnUsage(const std::string& root) {
  MUSTER_ASSIGN_OR_RETURN(const std::string mounts,
                          ReadFile(root + "/proc/self/mountinfo", kGroupFileMax));
  MUSTER_ASSIGN_OR_RETURN(const std::string own,
                          ReadFile(root + "/proc/self/cgroup", kGroupFileMax));
  const std::map<std::string, std::string> groups = ParseOwnCgroups(own);
  for (const CgroupMount& mount : ParseCgroupMounts(mounts)) {
    const bool memory =
        std::find(mount.options.begin(), mount.options.end(), "memory") != mount.options.end();
    const auto group = groups.find(mount.v2 ? "" : "memory");
    if (group == groups.end() || !(mount.v2 || memory)) continue;
    const std::string folder = root + CgroupFolder(mount, group->second);
    if (!Exists(folder + (mount.v2 ? "/memory.current" : "/memory.usage_in_bytes"))) continue;
    return Cgroup(mount.v2 ? CgroupBackend::kV2 : CgroupBackend::kV1,
                  {.memory = folder, .cpu = "", .cpuacct = "", .unified = ""})
        .ReadUsage();
  }
  return absl::NotFoundError("no control group counts the memory of this process");
}

absl::StatusOr<uint64_t> Cgroup::ReadPeak() const {
  const bool v1 = backend_ == CgroupBackend::kV1;
  return ReadNumber(paths_.memory + (v1 ? "/memory.max_usage_in_bytes" : "/memory.peak"));
}

absl::Status Cgroup::ReadMemory(CgroupUsage* usage) const {
  const bool v1 = backend_ == CgroupBackend::kV1;
  const std::string& in = paths_.memory;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t used,
                          ReadNumber(in + (v1 ? "/memory.usage_in_bytes" : "/memory.current")));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t limit,
                          ReadNumber(in + (v1 ? "/memory.limit_in_bytes" : "/memory.max")));
  MUSTER_ASSIGN_OR_RETURN(const std::string stat, ReadFile(in + "/memory.stat", kGroupFileMax));
  MUSTER_ASSIGN_OR_RETURN(
      const std::string events,
      ReadFile(in + (v1 ? "/memory.oom_control" : "/memory.events"), kGroupFileMax));
  const uint64_t cache =
      v1 ? KeyedNumber(stat, "total_inactive_file") + KeyedNumber(stat, "total_active_file")
         : DroppableBytes(stat);
  usage->memory_bytes = used - std::min(cache, used);
  usage->memory_limit_bytes = limit >= kNoLimit ? 0 : limit;
  usage->oom_kills = KeyedNumber(events, "oom_kill");
  const absl::StatusOr<uint64_t> peak = ReadPeak();
  // Version 2 reports the peak since Linux 5.19.
  if (peak.ok()) usage->memory_peak_bytes = *peak;
  // Version 1 counts no such event. Not every kernel counts memory.failcnt, and it also counts page
  // cache.
  usage->limit_reached =
      v1 ? (was_full_ || IsFull(usage->memory_peak_bytes, limit)) && cache <= limit / kCacheLeft
         : KeyedNumber(events, "oom") > 0;
  return absl::OkStatus();
}

absl::Status Cgroup::ReadCpu(CgroupUsage* usage) const {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  using std::chrono::nanoseconds;
  const bool v1 = backend_ == CgroupBackend::kV1;
  if (has_cpu()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string stat,
                            ReadFile(paths_.cpu + "/cpu.stat", kGroupFileMax));
    usage->throttled =
        v1 ? duration_cast<microseconds>(nanoseconds(KeyedNumber(stat, "throttled_time")))
           : microseconds(KeyedNumber(stat, "throttled_usec"));
  }
  if (v1 && !paths_.cpuacct.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t used, ReadNumber(paths_.cpuacct + "/cpuacct.usage"));
    usage->cpu = duration_cast<microseconds>(nanoseconds(used));
  } else if (!paths_.unified.empty()) {
    usage->cpu = ReadCpuTime(paths_.unified);
  }
  return absl::OkStatus();
}

bool Cgroup::exists() const {
  return Exists(paths_.memory);
}

absl::Status Cgroup::Remove() const {
  absl::Status status;
  for (const std::string& path : paths_.Distinct()) status.Update(RemoveGroup(path));
  return status;
}

}  // namespace muster
