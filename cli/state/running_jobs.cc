#include "cli/state/running_jobs.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgram = "muster";
constexpr uint64_t kNameMax = 64;

/// True if the process is `muster`. `process` is its folder in /proc.
bool IsProgram(const fs::path& process) {
  const absl::StatusOr<std::string> name = ReadFile((process / "comm").string(), kNameMax);
  return name.ok() && *name == std::string(kProgram) + "\n";
}

/// Adds the state directories whose locks the process has open. False if this user may not see its
/// files.
bool AddLocks(const fs::path& process, std::set<std::string>* paths) {
  std::error_code error;
  fs::directory_iterator files(process / "fd", error);
  if (error) return error != std::errc::permission_denied;
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    std::error_code closed;
    const fs::path target = fs::read_symlink(files->path(), closed);
    if (closed) continue;
    if (const auto path = StateDirectoryOfLock(target.native())) paths->insert(*path);
  }
  return true;
}

}  // namespace

std::optional<std::string> StateDirectoryOfLock(std::string_view path) {
  // The lock of an empty path is the lock's relative path in every state directory.
  const std::string suffix = StateDirectory("").lock();
  if (!path.ends_with(suffix) || path.size() == suffix.size()) return std::nullopt;
  path.remove_suffix(suffix.size());
  return std::string(path);
}

std::string RunningJobsText(const RunningJobs& jobs) {
  if (jobs.states.empty()) return "No job runs on this machine";
  std::string text;
  for (const StateDirectory& state : jobs.states) {
    const absl::StatusOr<Endpoint> endpoint = state.ReadEndpoint();
    const std::string name =
        endpoint.ok() ? Printable(endpoint->job.name) : "a job without a master";
    text += fmt::format("{}{} (state directory {})", text.empty() ? "" : ", ", name,
                        Printable(state.path()));
  }
  return fmt::format("On this machine {}: {}", jobs.states.size() == 1 ? "runs" : "run", text);
}

RunningJobs FindRunningJobs() {
  RunningJobs jobs;
  std::set<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator processes("/proc", error);
       !error && processes != fs::directory_iterator(); processes.increment(error)) {
    const fs::path& process = processes->path();
    if (process.filename().native().find_first_not_of("0123456789") != std::string::npos) continue;
    if (IsProgram(process) && !AddLocks(process, &paths)) ++jobs.hidden;
  }
  for (const std::string& path : paths) jobs.states.emplace_back(path);
  return jobs;
}

}  // namespace muster
