#include "host/processes/cgroup_tree.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "host/processes/cgroup_files.h"
#include "host/processes/cgroup_mounts.h"

namespace muster {
namespace {

constexpr uint64_t kTableMax = 1 << 20;  // bytes of text
constexpr std::string_view kRunPrefix = "muster-";
/// A run id contains no dot, so no run has this name.
constexpr std::string_view kAside = "/muster.own";

/// Removes a run's group in one hierarchy, with the groups of its nodes and the processes that may
/// be left in them.
absl::Status RemoveRun(const std::string& path) {
  absl::Status status;
  for (const std::string& node : GroupsIn(path)) {
    KillGroup(path + "/" + node);
    status.Update(RemoveGroup(path + "/" + node));
  }
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

/// True if the run's group in one hierarchy, or the group of one of its nodes, has an owner.
bool IsOwned(const std::string& run) {
  const std::vector<std::string> nodes = GroupsIn(run);
  return IsLocked(run) || std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
           return IsLocked(fmt::format("{}/{}/cgroup.procs", run, node));
         });
}

}  // namespace

CgroupTree CgroupTree::Detect(const Options& options) {
  CgroupTree tree;
  tree.options_ = options;
  const absl::Status name = CheckName(options.run_id);
  const absl::StatusOr<std::string> mounts =
      ReadFile(options.root + "/proc/self/mountinfo", kTableMax);
  const absl::StatusOr<std::string> own = ReadFile(options.root + "/proc/self/cgroup", kTableMax);
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
    const absl::StatusOr<std::string> has = ReadFile(folder + "/cgroup.controllers", kTableMax);
    // If version 1 controls memory, this hierarchy only shows the pressure.
    own_.unified = has.ok() ? folder : own_.unified;
    if (!has.ok() || !HasWord(*has, "memory")) continue;
    const std::string run = folder + "/" + std::string(kRunPrefix) + options_.run_id;
    absl::Status status = HandDown(folder);
    if (status.ok()) status = Own(run);
    if (status.ok()) status = HandDown(run);
    if (!status.ok()) {
      remark_ = fmt::format(
          "the control groups of version 2 cannot be used: {} (`systemd-run --user "
          "--scope "
          "-p Delegate=yes muster run ...` may help)",
          Message(status));
      continue;
    }
    backend_ = CgroupBackend::kV2;
    const bool cpu = HasWord(*has, "cpu");
    own_ = {.memory = folder, .cpu = cpu ? folder : "", .unified = folder};
    remark_ = cpu ? "" : "CPU cannot be limited: the cpu controller is not delegated to this user";
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
      const absl::Status status = Own(folder + run);
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
  // This group only shows pressure, so an error does not matter.
  if (!own_.unified.empty() && !Own(own_.unified + run).ok()) own_.unified.clear();
  backend_ = CgroupBackend::kV1;
  remark_ = own_.cpu.empty() ? no_cpu : "";
  return true;
}

absl::Status CgroupTree::Own(const std::string& run) {
  MUSTER_ASSIGN_OR_RETURN(OwnedFd lock, MakeLockedGroup(run));
  locks_.push_back(std::move(lock));
  return absl::OkStatus();
}

absl::Status CgroupTree::HandDown(const std::string& own) const {
  const std::string path = own + "/cgroup.subtree_control";
  MUSTER_ASSIGN_OR_RETURN(const std::string has, ReadFile(own + "/cgroup.controllers", kTableMax));
  MUSTER_ASSIGN_OR_RETURN(const std::string now, ReadFile(path, kTableMax));
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
  MUSTER_ASSIGN_OR_RETURN(std::string procs, ReadFile(own + "/cgroup.procs", kTableMax));
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
        fmt::format("{} has processes of others, such as {}", own, pid));
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

absl::StatusOr<Cgroup> CgroupTree::At(const std::string& node, uint32_t start) const {
  if (backend_ == CgroupBackend::kNone) {
    return absl::FailedPreconditionError(fmt::format("there are no control groups: {}", remark_));
  }
  MUSTER_RETURN_IF_ERROR(CheckName(node));
  return Cgroup(backend_, Below(fmt::format("/{}.{}", node, start)));
}

absl::StatusOr<Cgroup> CgroupTree::Open(const std::string& node, uint32_t start) const {
  MUSTER_ASSIGN_OR_RETURN(Cgroup group, At(node, start));
  if (group.exists()) return group;
  return absl::NotFoundError(fmt::format("{} has no control group for start {}", node, start));
}

absl::StatusOr<Cgroup> CgroupTree::Make(const std::string& node, uint32_t start) const {
  MUSTER_ASSIGN_OR_RETURN(Cgroup group, At(node, start));
  for (const std::string& run : Below("").Distinct()) {
    for (const std::string& name : GroupsIn(run)) {
      if (!name.starts_with(node + ".")) continue;
      KillGroup(run + "/" + name);
      RemoveGroup(run + "/" + name).IgnoreError();
    }
  }
  MUSTER_RETURN_IF_ERROR(group.Remove());
  for (const std::string& path : group.paths_.Distinct()) MUSTER_RETURN_IF_ERROR(MakeGroup(path));
  return group;
}

std::vector<std::string> CgroupTree::RemoveDead() const {
  std::map<std::string, bool> owned;  // by run id
  for (const std::string& own : own_.Distinct()) {
    for (const std::string& name : GroupsIn(own)) {
      if (!name.starts_with(kRunPrefix)) continue;
      owned[name.substr(kRunPrefix.size())] |= IsOwned(own + "/" + name);
    }
  }
  std::vector<std::string> removed;
  for (const auto& [run_id, is_owned] : owned) {
    if (is_owned || run_id == options_.run_id) continue;
    absl::Status status;
    for (const std::string& own : own_.Distinct()) {
      status.Update(RemoveRun(fmt::format("{}/{}{}", own, kRunPrefix, run_id)));
    }
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
