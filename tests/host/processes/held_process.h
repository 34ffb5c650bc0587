#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptors.h"
#include "base/file.h"
#include "host/processes/process_tree.h"

/// Processes that tests of launchers start and look at.
namespace muster::testing {

/// A process, held by a pidfd: pid reuse cannot mislead the test.
class HeldProcess {
 public:
  explicit HeldProcess(pid_t pid) : pid_(pid), fd_(OpenProcess(pid)) {}
  pid_t pid() const { return pid_; }
  /// Waits, up to a bound that only a failing test reaches.
  bool Ended() const { return fd_.get() < 0 || EndedWithin(20'000); }
  bool Lives() const { return fd_.get() >= 0 && !EndedWithin(0); }

 private:
  bool EndedWithin(int milliseconds) const {
    pollfd poll_fd = {fd_.get(), POLLIN, 0};
    return ::poll(&poll_fd, 1, milliseconds) == 1;
  }
  pid_t pid_;
  OwnedFd fd_;
};

/// A shell script: a child, a grandchild in a session of its own and an orphaned one, all told to
/// ignore SIGTERM and SIGHUP; their four pids go to `file`.
inline std::string Family(const std::string& file) {
  return fmt::format(
      "trap '' TERM HUP; sleep 1000 & echo $! >> {0}; "
      "setsid sh -c 'echo $$ >> {0}; sleep 1000 & wait' & "
      "(setsid sleep 1000 & echo $! >> {0}); echo $$ >> {0}; wait",
      file);
}

/// Numbers that processes write into `file`, one per line, as soon as there are `count`. `wait`
/// takes a few milliseconds.
inline std::vector<HeldProcess> ReadPids(const std::string& file, size_t count,
                                         const std::function<void()>& wait) {
  std::vector<HeldProcess> processes;
  for (int i = 0; i < 2000; ++i) {
    const absl::StatusOr<std::string> text = ReadFile(file, 1 << 20);
    if (text.ok() && static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) >= count) {
      std::istringstream lines(*text);
      pid_t pid = 0;
      while (processes.size() < count && lines >> pid) processes.emplace_back(pid);
      return processes;
    }
    wait();
  }
  ADD_FAILURE() << "the pids never came";
  return processes;
}
inline std::vector<HeldProcess> ReadPids(const std::string& file, size_t count) {
  return ReadPids(file, count, [] { ::poll(nullptr, 0, 10); });
}

/// The pids of this process's descendants that are `supervise`.
inline std::vector<pid_t> Supervisors() {
  std::vector<pid_t> found;
  for (const pid_t pid : Descendants({})) {
    const std::vector<std::string> words = CommandLineOf(pid);
    if (words.size() > 1 && words[1] == "supervise") found.push_back(pid);
  }
  return found;
}

}  // namespace muster::testing
