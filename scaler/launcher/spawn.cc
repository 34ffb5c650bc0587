#include "scaler/launcher/spawn.h"

#include <spawn.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace muster {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!added.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
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
