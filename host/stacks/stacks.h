#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace muster {

/// Limits on what is printed about a process.
struct StackLimits {
  int threads = 256;
  int frames = 64;  // per thread, innermost first
};

/// Prints the stacks of all threads of a process, line by line (without line breaks). The first
/// thread of the process comes first. For each thread, it prints its name, its state, and where in
/// the kernel it waits, and then its functions with their files. Each thread is stopped (ptrace)
/// for some milliseconds, one after the other. A thread that was already stopped stays stopped. If
/// a stack is not available, a line says why: the process is gone, or this user may not trace it.
///
/// Call it in a process of its own that can be killed. It reads the files of the process, takes an
/// unknown time, and may wait for ever for a thread in the kernel. Interpreted functions (Python's)
/// do not appear, but their interpreter does.
void PrintStacks(pid_t pid, const StackLimits& limits,
                 const std::function<void(const std::string& line)>& print);

}  // namespace muster
