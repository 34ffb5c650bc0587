#include "host/processes/spawn.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr char kUmaskName[] = "MUSTER_USERS_UMASK";
constexpr mode_t kPrivate = 0077;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

constexpr std::string_view kAddedPrefix = "MUSTER_ADDED_";

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> own;
  for (char** entry = environ; *entry != nullptr; ++entry) own.emplace_back(*entry);
  return own;
}

bool IsAdded(std::string_view entry) {
  return entry.starts_with(kAddedPrefix);
}

}  // namespace

std::string OwnProgram() {
  constexpr std::string_view kReplaced = " (deleted)";  // the kernel appends this
  std::error_code error;
  std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (path.ends_with(kReplaced)) path.resize(path.size() - kReplaced.size());
  return path;
}

std::string ImageOf(const std::string& program) {
  return !program.empty() && program == OwnProgram() ? "/proc/self/exe" : program;
}

std::vector<std::string> SupervisorEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> environment = OwnEnvironment();
  // This process may itself be a supervised command, and its program did not take these variables.
  std::erase_if(environment, IsAdded);
  for (const auto& [name, value] : added) {
    environment.push_back(fmt::format("{}{}={}", kAddedPrefix, name, value));
  }
  return environment;
}

void TakeAddedEnvironment() {
  for (const std::string& entry : OwnEnvironment()) {
    const size_t equals = entry.find('=');
    if (!IsAdded(entry) || equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    ::unsetenv(name.c_str());
    ::setenv(name.c_str() + kAddedPrefix.size(), entry.c_str() + equals + 1, /*replace=*/1);
  }
}

void KeepFilesPrivate() {
  const mode_t former = ::umask(kPrivate);
  // If a process above has noted a umask already, ours is not the user's, so that one stays.
  ::setenv(kUmaskName, fmt::format("{:o}", former).c_str(), /*replace=*/0);
}

void TakeUsersUmask() {
  const char* const noted = std::getenv(kUmaskName);
  if (noted == nullptr) return;
  ::umask(static_cast<mode_t>(std::strtoul(noted, nullptr, 8) & 0777));
  ::unsetenv(kUmaskName);
}

absl::StatusOr<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const std::vector<int>& inherited_fds) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // A dup onto itself clears close-on-exec in the child alone.
  for (int fd : inherited_fds) {
    if (fd >= 0) ::posix_spawn_file_actions_adddup2(&actions, fd, fd);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  absl::Cleanup destroy = [&] {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  };
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(environment);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  if (error != 0) return ErrnoStatus(error, fmt::format("cannot start {}", program));
  return pid;
}

}  // namespace muster
