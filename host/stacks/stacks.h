#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace muster {

/// Limits on what is printed of a process.
struct StackLimits {
  int threads = 256;
  int frames = 64;  // of one thread, innermost first
};

/// Prints the stacks of all threads of a process, line by line (without line breaks), the thread
/// that began it first: its name, its state and where in the kernel it waits, then its functions
/// with the files that they are from. Each thread is stopped (ptrace) for some milliseconds, one
/// after the other; a thread that was already stopped stays stopped. If a stack is not available, a
/// line says so: the process is gone, or this user may not trace it.
///
/// Call it in a process of its own that can be killed: it reads the files of the process, takes an
/// unknown time, and may wait without end for a thread in the kernel. Interpreted functions
/// (Python's) do not appear, but their interpreter does.
void PrintStacks(pid_t pid, const StackLimits& limits,
                 const std::function<void(const std::string& line)>& print);

}  // namespace muster
