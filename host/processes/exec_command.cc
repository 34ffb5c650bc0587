#include "host/processes/exec_command.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"
#include "host/processes/cgroup.h"
#include "host/processes/spawn.h"

namespace muster {

absl::Status ToStatus(const ExecError& error, const SuperviseOptions& options) {
  switch (error.what) {
    case ExecError::kGroup:
      return ErrnoStatus(error.number, "cannot enter the control group");
    case ExecError::kFolder:
      return ErrnoStatus(error.number,
                         fmt::format("cannot change to {}", options.working_directory));
    case ExecError::kCommand:
      break;
  }
  return ErrnoStatus(error.number, fmt::format("cannot execute {}", options.command.front()));
}

void ExecCommand(const SuperviseOptions& options, int log_fd, int error_fd, pid_t supervisor) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // On some systems, only ancestors may trace a process. Here, a child of the supervising process
  // reads the stacks.
  ::prctl(PR_SET_PTRACER, supervisor);
  if (::getppid() != supervisor) ::_exit(137);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  // SIGTERM tells a node to stop, even if `muster run` was started with SIGTERM ignored.
  ::signal(SIGTERM, SIG_DFL);
  TakeAddedEnvironment();
  TakeUsersUmask();
  for (const int fd : options.pass_fds) SetCloseOnExec(fd, false);
  if (log_fd >= 0) {
    ::dup2(log_fd, STDOUT_FILENO);
    ::dup2(log_fd, STDERR_FILENO);
  }
  std::vector<char*> argv;
  for (const std::string& argument : options.command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const auto& groups = options.cgroup_fds;
  const ExecError outside{.number = JoinCgroup(groups.data(), groups.size()),
                          .what = ExecError::kGroup};
  [[maybe_unused]] ssize_t ignored = 0;
  // The command can run outside of its groups, too. The parent then checks its memory instead.
  if (outside.number != 0) ignored = ::write(error_fd, &outside, sizeof(outside));
  ExecError failed;
  if (!options.working_directory.empty() && ::chdir(options.working_directory.c_str()) != 0) {
    failed = {.number = errno, .what = ExecError::kFolder};
  }
  if (failed.number == 0) {
    ::execvp(ImageOf(options.command.front()).c_str(), argv.data());
    failed = {.number = errno, .what = ExecError::kCommand};
  }
  ignored = ::write(error_fd, &failed, sizeof(failed));
  ::_exit(failed.number == ENOENT ? 127 : 126);
}

}  // namespace muster
