#include "cli/cluster/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/status.h"

namespace muster::cluster {
namespace {

std::string BaseFolder() {
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  return own != nullptr && own[0] == '/' && ::access(own, W_OK | X_OK) == 0 ? own : "/tmp";
}

/// Waits until the other end of the pipe is closed, and then removes the folder.
[[noreturn]] void RemoveAfter(int life, const std::string& path) {
  // Ctrl-C reaches all processes of the group, but this one must live on.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "muster-folder");
  // Otherwise readers of our output would wait for this process.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  char ignored = 0;
  ssize_t got = 0;
  do {
    got = ::read(life, &ignored, 1);
  } while (got > 0 || (got < 0 && errno == EINTR));
  std::error_code error;
  std::filesystem::remove_all(path, error);
  ::_exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateFolder>> PrivateFolder::Make() {
  MUSTER_ASSIGN_OR_RETURN(std::string path, MakePrivateFolder(BaseFolder(), "muster-link"));
  std::array<int, 2> life{};
  if (::pipe2(life.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    ::rmdir(path.c_str());
    return ErrnoStatus(error, "cannot create a pipe");
  }
  const pid_t remover = ::fork();
  if (remover == 0) {
    ::close(life[1]);
    RemoveAfter(life[0], path);
  }
  const int error = errno;
  ::close(life[0]);
  if (remover > 0) {
    return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(path), life[1], remover));
  }
  ::close(life[1]);
  ::rmdir(path.c_str());
  return ErrnoStatus(error, "cannot start a process");
}

PrivateFolder::~PrivateFolder() {
  ::close(life_);
  while (::waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace muster::cluster
