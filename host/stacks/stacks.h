#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace muster {

/// What of a process is printed at most.
struct StackLimits {
  int threads = 256;
  int frames = 64;  // of one thread, innermost first
};

/// Prints the stacks of all threads of a process, line by line (without line breaks), the thread
/// that began it first: its name, its state and where in the kernel it waits, then its functions
/// with the files that they are from. Each thread is stopped (ptrace) for some milliseconds, one
/// after the other; one that somebody had stopped stays so. What cannot be had is said in a line:
/// the process is gone, or may not be looked at.
///
/// Takes as long as it takes (the files of the process are read), and may wait for ever on a thread
/// that the kernel does not let go: for a process of its own that can be killed. Functions that are
/// interpreted (Python's) do not appear, their interpreter does.
void PrintStacks(pid_t pid, const StackLimits& limits,
                 const std::function<void(const std::string& line)>& print);

}  // namespace muster
