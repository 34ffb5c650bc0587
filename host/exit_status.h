#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// How a process ended: by a signal (then `code` is 0) or by exit(code).
struct ExitStatus {
  int signal = 0;
  int code = 0;
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

/// "SIGKILL" or "exit 1".
std::string ToString(const ExitStatus& exit);

/// The cause of an exit; docs/architecture.md says what follows for shards.
enum class ExitKind : uint8_t {
  kClean,    // exit 0
  kProgram,  // the program's own failure: SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP
             // or a nonzero exit
  kNode,     // killed from outside: SIGKILL (out of memory among them), SIGTERM and the rest
};
ExitKind Classify(const ExitStatus& exit);

/// Says whether a process was killed for its memory, and by whom.
enum class MemoryKill : uint8_t {
  kNone,     // it was not, as far as is known
  kKernel,   // by the kernel, because the node's own limit was reached
  kOwn,      // by this program, which watches resident memory if the kernel enforces no limit
  kMachine,  // by the kernel, because the whole machine was short: the node's limit was not reached
};

/// A short text: what this exit usually means and what to do about it.
std::string Explain(const ExitStatus& exit);

/// The status that waitpid() returned. Requires: the process has ended.
ExitStatus FromWaitStatus(int wait_status);

}  // namespace muster
