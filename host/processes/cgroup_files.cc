#include "host/processes/cgroup_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <map>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr uint64_t kNumberMax = 4096;  // bytes of text
constexpr int kLockTries = 10;

constexpr uint64_t kProcsMax = 16 << 20;  // bytes of text
constexpr int kKillTries = 200;
constexpr std::chrono::milliseconds kKillPause{5};

std::vector<pid_t> ProcessesIn(const std::string& path) {
  std::vector<pid_t> pids;
  std::istringstream procs(ReadFile(path + "/cgroup.procs", kProcsMax).value_or(""));
  for (pid_t pid = 0; procs >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace

absl::Status WriteControl(const std::string& path, std::string_view value) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  if (::write(fd.get(), value.data(), value.size()) < 0) {
    return ErrnoStatus(errno, fmt::format("cannot write '{}' to {}", value, path));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReadNumber(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kNumberMax));
  if (text.starts_with("max")) return kNoLimit;
  uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
    return absl::DataLossError(fmt::format("{} has no number: '{}'", path, text.substr(0, 40)));
  }
  return number;
}

absl::Status MakeGroup(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot create the control group {}", path));
}

absl::Status RemoveGroup(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno == EBUSY) {
    return absl::FailedPreconditionError(
        fmt::format("the control group {} still has processes", path));
  }
  return ErrnoStatus(errno, fmt::format("cannot remove the control group {}", path));
}

void KillGroup(const std::string& path) {
  std::map<pid_t, OwnedFd> held;
  for (int tries = 0; tries < kKillTries; ++tries) {
    const std::vector<pid_t> pids = ProcessesIn(path);
    if (pids.empty()) return;
    for (const pid_t pid : pids) {
      // The pidfd was opened before this check, so the pid still belongs to this process.
      const auto [process, added] = held.try_emplace(pid, OpenProcess(pid));
      if (!added) SignalProcess(process->second, SIGKILL);
    }
    if (tries > 0) SleepFor(kKillPause);
  }
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

absl::StatusOr<OwnedFd> MakeLockedGroup(const std::string& path) {
  for (int tries = 0; tries < kLockTries; ++tries) {
    MUSTER_RETURN_IF_ERROR(MakeGroup(path));
    OwnedFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat locked, named;
    if (fd.get() < 0 || ::flock(fd.get(), LOCK_SH) != 0 || ::fstat(fd.get(), &locked) != 0) {
      return ErrnoStatus(errno, fmt::format("cannot lock the control group {}", path));
    }
    // Another process may have removed the group before it was locked, because it took it for one
    // of a dead run.
    if (::stat(path.c_str(), &named) == 0 && named.st_ino == locked.st_ino) return fd;
  }
  return absl::AbortedError(
      fmt::format("another process removes the control group {} again and again", path));
}

bool IsLocked(const std::string& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.get() >= 0 && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace muster
