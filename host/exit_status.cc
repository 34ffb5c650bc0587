#include "host/exit_status.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/check.h"

namespace muster {

std::string ToString(const ExitStatus& exit) {
  if (exit.signal == 0) return fmt::format("exit {}", exit.code);
  const char* name = ::sigabbrev_np(exit.signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", exit.signal);
}

ExitKind Classify(const ExitStatus& exit) {
  switch (exit.signal) {
    case 0:
      return exit.code == 0 ? ExitKind::kClean : ExitKind::kProgram;
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGSYS:
    case SIGTRAP:
      return ExitKind::kProgram;
    default:
      return ExitKind::kNode;
  }
}

std::string Explain(const ExitStatus& exit) {
  if (exit.signal == SIGKILL) {
    return "SIGKILL comes from outside, most often from the kernel when memory runs out. Give the "
           "node less work or more memory, and look at `dmesg`";
  }
  if (exit.signal == SIGSEGV || exit.signal == SIGBUS) {
    return "the program used memory that it may not use. Run it under a debugger or with "
           "-fsanitize=address";
  }
  if (exit.signal == SIGABRT) {
    return "the program aborted itself (an uncaught exception or a failed check). Its last lines "
           "say why";
  }
  if (exit.signal == 0 && exit.code == 127) {
    return "the command was not found. Check the path and the libraries that it needs (`ldd`)";
  }
  if (exit.signal == 0 && exit.code == 126) {
    return "the command could not be executed. Check its permissions and its format";
  }
  if (exit.signal == 0 && exit.code == 0) {
    return "it ended without an error, but the job was not over. A trainer must take shards until "
           "NextShard() returns nothing";
  }
  return "its last lines should say why";
}

ExitStatus FromWaitStatus(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.signal = WTERMSIG(wait_status), .code = 0};
  MUSTER_CHECK(WIFEXITED(wait_status));
  return {.signal = 0, .code = WEXITSTATUS(wait_status)};
}

}  // namespace muster
