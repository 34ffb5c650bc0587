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

/// Whose doing an exit was; docs/architecture.md says what follows from it for shards.
enum class ExitKind : uint8_t {
  kClean,    // exit 0
  kProgram,  // the program's own failure: SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP
             // or a nonzero exit
  kNode,     // killed from outside: SIGKILL (out of memory among them), SIGTERM and the rest
};
ExitKind Classify(const ExitStatus& exit);

/// Who killed a process for the memory that it used.
enum class MemoryKill : uint8_t {
  kNone,     // nobody, or nobody that could be found out
  kKernel,   // the kernel, since the node's own limit was reached
  kOwn,      // this program, which watches resident memory where the kernel knows no limit
  kMachine,  // the kernel, since the whole machine was short: the node's limit was not reached
};

/// One sentence for people: what this exit usually means and what to do about it.
std::string Explain(const ExitStatus& exit);

/// The status that waitpid() gave. Requires: the process ended.
ExitStatus FromWaitStatus(int wait_status);

}  // namespace muster
