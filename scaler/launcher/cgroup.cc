#include "scaler/launcher/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/status.h"
#include "scaler/launcher/cgroup_mounts.h"

namespace muster {
namespace {

constexpr uint64_t kTextMax = 1 << 20;
/// Version 1 shows "no limit" as the largest number of whole pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;
/// The kernel's own default, and the shortest quota it takes.
constexpr int64_t kCpuPeriodUs = 100'000;
constexpr int64_t kCpuQuotaMinUs = 1'000;
constexpr std::string_view kRunPrefix = "muster-";
/// No run id has a dot.
constexpr std::string_view kAside = "/muster.own";

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

/// One write, as the kernel wants it. A file that is not there is an error: nothing is created.
absl::Status WriteControl(const std::string& path, std::string_view value) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  if (::write(fd, value.data(), value.size()) < 0) {
    return ErrnoStatus(errno, fmt::format("cannot write '{}' to {}", value, path));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReadNumber(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTextMax));
  if (text.starts_with("max")) return kNoLimit;
  uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
    return absl::DataLossError(fmt::format("{} has no number: '{}'", path, text.substr(0, 40)));
  }
  return number;
}

/// "some avg10=1.25 avg60=..."; -1 when there is no such file or line.
double ReadPressure(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kTextMax);
  constexpr std::string_view kBegin = "some avg10=";
  if (!text.ok() || !text->starts_with(kBegin)) return -1;
  return std::strtod(text->c_str() + kBegin.size(), nullptr);
}

absl::Status MakeGroup(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot make the control group {}", path));
}

absl::Status RemoveGroup(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno == EBUSY) {
    return absl::FailedPreconditionError(
        fmt::format("the control group {} still has processes", path));
  }
  return ErrnoStatus(errno, fmt::format("cannot remove the control group {}", path));
}

std::vector<std::string> GroupsIn(const std::string& path) {
  std::vector<std::string> names;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  absl::Cleanup close_folder = [folder] { ::closedir(folder); };
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

/// A run's group in one hierarchy, with its nodes'.
absl::Status RemoveRun(const std::string& path) {
  absl::Status status;
  for (const std::string& node : GroupsIn(path)) status.Update(RemoveGroup(path + "/" + node));
  status.Update(RemoveGroup(path));
  return status;
}

absl::Status CheckName(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (!name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), fits)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' cannot name a control group: 1 to 64 letters, digits, '-' and '_'",
                  name.substr(0, 80)));
}

bool HasWord(const std::string& text, const std::string& word) {
  return (" " + text.substr(0, text.find('\n')) + " ").find(" " + word + " ") != std::string::npos;
}

std::string Aside(std::string own) {
  if (own.ends_with(kAside)) own.resize(own.size() - kAside.size());
  return own;
}

}  // namespace

std::string ToString(CgroupBackend backend) {
  switch (backend) {
    case CgroupBackend::kV1:
      return "v1";
    case CgroupBackend::kV2:
      return "v2";
    case CgroupBackend::kNone:
      break;
  }
  return "none";
}

int JoinCgroup(const int* fds, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) {
    // 0 = the writing process.
    while (::write(fds[i], "0", 1) < 0) {
      if (errno != EINTR) return errno;
    }
  }
  return 0;
}

std::vector<std::string> Cgroup::Paths::Distinct() const {
  std::vector<std::string> paths;
  for (const std::string& path : {memory, cpu, cpuacct, unified}) {
    const bool known = std::find(paths.begin(), paths.end(), path) != paths.end();
    if (!path.empty() && !known) paths.push_back(path);
  }
  return paths;
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : backend_(other.backend_),
      paths_(std::move(other.paths_)),
      join_fds_(std::exchange(other.join_fds_, {})) {}

Cgroup::~Cgroup() {
  for (int fd : join_fds_) ::close(fd);
}

absl::Status Cgroup::SetLimits(const CgroupLimits& limits) {
  if (!std::isfinite(limits.cpus) || limits.cpus < 0) {
    return absl::InvalidArgumentError(fmt::format("{} is no number of cores", limits.cpus));
  }
  if (limits.memory_bytes > 0) {
    MUSTER_ASSIGN_OR_RETURN(const CgroupUsage usage, ReadUsage());
    if (usage.memory_bytes > limits.memory_bytes) {
      return absl::FailedPreconditionError(
          fmt::format("{}: a memory limit of {} bytes is below the {} bytes in use", paths_.memory,
                      limits.memory_bytes, usage.memory_bytes));
    }
  }
  MUSTER_RETURN_IF_ERROR(backend_ == CgroupBackend::kV1 ? SetMemoryV1(limits.memory_bytes)
                                                        : SetMemoryV2(limits.memory_bytes));
  return SetCpus(limits.cpus);
}

absl::Status Cgroup::SetMemoryV1(uint64_t bytes) const {
  const std::string limit = paths_.memory + "/memory.limit_in_bytes";
  // Memory with swap; only where the kernel keeps account of swap.
  const std::string with_swap = paths_.memory + "/memory.memsw.limit_in_bytes";
  const std::string value = bytes == 0 ? "-1" : std::to_string(bytes);
  MUSTER_ASSIGN_OR_RETURN(const uint64_t now, ReadNumber(limit));
  // At no moment may the first be above the second.
  const bool raise = bytes == 0 || bytes > now;
  if (raise && Exists(with_swap)) MUSTER_RETURN_IF_ERROR(WriteControl(with_swap, value));
  MUSTER_RETURN_IF_ERROR(WriteControl(limit, value));
  if (!raise && Exists(with_swap)) MUSTER_RETURN_IF_ERROR(WriteControl(with_swap, value));
  return absl::OkStatus();
}

absl::Status Cgroup::SetMemoryV2(uint64_t bytes) const {
  // All of a node or nothing: one that lost a child may look alive and be no use.
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

absl::Status Cgroup::ReadMemory(CgroupUsage* usage) const {
  const bool v1 = backend_ == CgroupBackend::kV1;
  const std::string& in = paths_.memory;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t used,
                          ReadNumber(in + (v1 ? "/memory.usage_in_bytes" : "/memory.current")));
  MUSTER_ASSIGN_OR_RETURN(const uint64_t limit,
                          ReadNumber(in + (v1 ? "/memory.limit_in_bytes" : "/memory.max")));
  MUSTER_ASSIGN_OR_RETURN(const std::string stat, ReadFile(in + "/memory.stat", kTextMax));
  MUSTER_ASSIGN_OR_RETURN(const std::string events,
                          ReadFile(in + (v1 ? "/memory.oom_control" : "/memory.events"), kTextMax));
  const uint64_t cache = KeyedNumber(stat, v1 ? "total_inactive_file" : "inactive_file");
  usage->memory_bytes = used - std::min(cache, used);
  usage->memory_limit_bytes = limit >= kNoLimit ? 0 : limit;
  usage->oom_kills = KeyedNumber(events, "oom_kill");
  const absl::StatusOr<uint64_t> peak =
      ReadNumber(in + (v1 ? "/memory.max_usage_in_bytes" : "/memory.peak"));
  // Version 2 has it since Linux 5.19.
  if (peak.ok()) usage->memory_peak_bytes = *peak;
  return absl::OkStatus();
}

absl::Status Cgroup::ReadCpu(CgroupUsage* usage) const {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  using std::chrono::nanoseconds;
  const bool v1 = backend_ == CgroupBackend::kV1;
  if (has_cpu()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string stat, ReadFile(paths_.cpu + "/cpu.stat", kTextMax));
    usage->throttled_periods = KeyedNumber(stat, "nr_throttled");
    usage->throttled =
        v1 ? duration_cast<microseconds>(nanoseconds(KeyedNumber(stat, "throttled_time")))
           : microseconds(KeyedNumber(stat, "throttled_usec"));
    if (!v1) usage->cpu = microseconds(KeyedNumber(stat, "usage_usec"));
  }
  if (v1 && !paths_.cpuacct.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const uint64_t used, ReadNumber(paths_.cpuacct + "/cpuacct.usage"));
    usage->cpu = duration_cast<microseconds>(nanoseconds(used));
  }
  return absl::OkStatus();
}

absl::Status Cgroup::Remove() {
  absl::Status status;
  for (const std::string& path : paths_.Distinct()) status.Update(RemoveGroup(path));
  return status;
}

CgroupTree CgroupTree::Detect(const Options& options) {
  CgroupTree tree;
  tree.options_ = options;
  const absl::Status name = CheckName(options.run_id);
  const absl::StatusOr<std::string> mounts =
      ReadFile(options.root + "/proc/self/mountinfo", kTextMax);
  const absl::StatusOr<std::string> own = ReadFile(options.root + "/proc/self/cgroup", kTextMax);
  for (const absl::Status& status : {name, mounts.status(), own.status()}) {
    if (status.ok()) continue;
    tree.remark_ = Message(status);
    return tree;
  }
  if (!tree.FindV2(*mounts, *own) && !tree.FindV1(*mounts, *own)) {
    tree.backend_ = CgroupBackend::kNone;
    tree.own_ = {};
    if (tree.remark_.empty()) tree.remark_ = "no memory controller of control groups is mounted";
  }
  return tree;
}

bool CgroupTree::FindV2(const std::string& mountinfo, const std::string& own) {
  const std::map<std::string, std::string> groups = ParseOwnCgroups(own);
  const auto group = groups.find("");
  for (const CgroupMount& mount : ParseCgroupMounts(mountinfo)) {
    if (!mount.v2 || group == groups.end()) continue;
    const std::string folder = Aside(options_.root + CgroupFolder(mount, group->second));
    const absl::StatusOr<std::string> has = ReadFile(folder + "/cgroup.controllers", kTextMax);
    // Version 1 may have the memory; this hierarchy is then good for pressure.
    own_.unified = has.ok() ? folder : own_.unified;
    if (!has.ok() || !HasWord(*has, "memory")) continue;
    const std::string run = folder + "/" + std::string(kRunPrefix) + options_.run_id;
    absl::Status status = HandDown(folder);
    if (status.ok()) status = MakeGroup(run);
    if (status.ok()) status = HandDown(run);
    if (!status.ok()) {
      remark_ = fmt::format(
          "control groups of version 2 are there, but not ours to use: {} (`systemd-run --user "
          "--scope "
          "-p Delegate=yes muster run ...` may help)",
          Message(status));
      continue;
    }
    backend_ = CgroupBackend::kV2;
    const bool cpu = HasWord(*has, "cpu");
    own_ = {.memory = folder, .cpu = cpu ? folder : "", .unified = folder};
    remark_ = cpu ? "" : "CPU cannot be limited: the cpu controller is not handed to us";
    return true;
  }
  return false;
}

bool CgroupTree::FindV1(const std::string& mountinfo, const std::string& own) {
  const std::map<std::string, std::string> groups = ParseOwnCgroups(own);
  const std::string run = "/" + std::string(kRunPrefix) + options_.run_id;
  std::string no_memory = remark_;
  std::string no_cpu = "CPU cannot be limited: no cpu controller is mounted";
  const auto find = [&](const std::string& controller, std::string* remark) -> std::string {
    for (const CgroupMount& mount : ParseCgroupMounts(mountinfo)) {
      const auto& options = mount.options;
      const auto group = groups.find(controller);
      if (mount.v2 || group == groups.end()) continue;
      if (std::find(options.begin(), options.end(), controller) == options.end()) continue;
      const std::string folder = options_.root + CgroupFolder(mount, group->second);
      const absl::Status status = MakeGroup(folder + run);
      if (status.ok()) return folder;
      *remark = Message(status);
    }
    return "";
  };
  own_.memory = find("memory", &no_memory);
  if (own_.memory.empty()) {
    remark_ = no_memory;
    return false;
  }
  own_.cpu = find("cpu", &no_cpu);
  std::string ignored;
  own_.cpuacct = find("cpuacct", &ignored);
  // For pressure only, so no matter.
  if (!own_.unified.empty() && !MakeGroup(own_.unified + run).ok()) own_.unified.clear();
  backend_ = CgroupBackend::kV1;
  remark_ = own_.cpu.empty() ? no_cpu : "";
  return true;
}

absl::Status CgroupTree::HandDown(const std::string& own) const {
  const std::string path = own + "/cgroup.subtree_control";
  MUSTER_ASSIGN_OR_RETURN(const std::string has, ReadFile(own + "/cgroup.controllers", kTextMax));
  MUSTER_ASSIGN_OR_RETURN(const std::string now, ReadFile(path, kTextMax));
  std::string wanted;
  for (const char* controller : {"memory", "cpu"}) {
    if (!HasWord(has, controller) || HasWord(now, controller)) continue;
    wanted += fmt::format("{}+{}", wanted.empty() ? "" : " ", controller);
  }
  if (wanted.empty()) return absl::OkStatus();
  const absl::Status status = WriteControl(path, wanted);
  if (status.ok() || !MoveAside(own).ok()) return status;
  return WriteControl(path, wanted);
}

absl::Status CgroupTree::MoveAside(const std::string& own) const {
  MUSTER_ASSIGN_OR_RETURN(std::string procs, ReadFile(own + "/cgroup.procs", kTextMax));
  std::vector<std::string> pids;
  while (!procs.empty()) {
    const size_t end = std::min(procs.find('\n'), procs.size());
    pids.push_back(procs.substr(0, end));
    procs.erase(0, end + 1);
  }
  for (const std::string& pid : pids) {
    const auto& movable = options_.movable;
    const auto number = static_cast<pid_t>(std::strtol(pid.c_str(), nullptr, 10));
    if (std::find(movable.begin(), movable.end(), number) != movable.end()) continue;
    return absl::FailedPreconditionError(
        fmt::format("{} has processes that are not this run's, such as {}", own, pid));
  }
  const std::string aside = own + std::string(kAside);
  MUSTER_RETURN_IF_ERROR(MakeGroup(aside));
  for (const std::string& pid : pids) {
    MUSTER_RETURN_IF_ERROR(WriteControl(aside + "/cgroup.procs", pid));
  }
  return absl::OkStatus();
}

Cgroup::Paths CgroupTree::Below(const std::string& name) const {
  const auto below = [&](const std::string& own) {
    return own.empty() ? "" : fmt::format("{}/{}{}{}", own, kRunPrefix, options_.run_id, name);
  };
  return {.memory = below(own_.memory),
          .cpu = below(own_.cpu),
          .cpuacct = below(own_.cpuacct),
          .unified = below(own_.unified)};
}

absl::StatusOr<Cgroup> CgroupTree::Open(const std::string& node) const {
  if (backend_ == CgroupBackend::kNone) {
    return absl::FailedPreconditionError(fmt::format("no control groups: {}", remark_));
  }
  MUSTER_RETURN_IF_ERROR(CheckName(node));
  Cgroup group(backend_, Below("/" + node));
  for (const std::string& path : group.paths_.Distinct()) {
    MUSTER_RETURN_IF_ERROR(MakeGroup(path));
    const std::string procs = path + "/cgroup.procs";
    const int fd = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", procs));
    group.join_fds_.push_back(fd);
  }
  return group;
}

std::vector<std::string> CgroupTree::RemoveDead(
    const std::function<bool(const std::string& run_id)>& is_alive) const {
  std::map<std::string, absl::Status> runs;
  for (const std::string& own : own_.Distinct()) {
    for (const std::string& name : GroupsIn(own)) {
      if (!name.starts_with(kRunPrefix)) continue;
      const std::string run_id = name.substr(kRunPrefix.size());
      if (run_id == options_.run_id || is_alive(run_id)) continue;
      runs[run_id].Update(RemoveRun(own + "/" + name));
    }
  }
  std::vector<std::string> removed;
  for (const auto& [run_id, status] : runs) {
    if (status.ok()) removed.push_back(run_id);
  }
  return removed;
}

absl::Status CgroupTree::Remove() const {
  absl::Status status;
  for (const std::string& path : Below("").Distinct()) status.Update(RemoveRun(path));
  return status;
}

}  // namespace muster
