#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/descriptors.h"
#include "host/stacks/stacks.h"

namespace muster {

/// A child process that prints the stacks of other processes, so that its waits and errors do not
/// affect this process. Movable; not thread-safe.
class StackDump {
 public:
  /// Forks, so the calling process must have one thread. Errors: it cannot make a pipe or a
  /// process.
  static absl::StatusOr<StackDump> Start(std::vector<pid_t> pids, const StackLimits& limits);
  StackDump(StackDump&& other) noexcept
      : pids_(std::move(other.pids_)),
        stopped_before_(std::move(other.stopped_before_)),
        child_(other.child_),
        process_(std::move(other.process_)),
        output_(std::move(other.output_)),
        finished_(std::exchange(other.finished_, true)),
        line_(std::move(other.line_)),
        bytes_(other.bytes_) {}
  StackDump& operator=(StackDump&&) = delete;
  /// Ends the child. The caller reaps it together with its other children. If the child had not
  /// finished, threads that it may have stopped continue.
  ~StackDump();

  /// This descriptor is readable if there is something to take.
  int fd() const { return output_.get(); }
  pid_t child() const { return child_; }

  enum class State { kMore, kFinished, kBroken };
  /// Passes the lines that have arrived to `print`. It does not wait. kBroken if the child ended
  /// too early, or printed more than a mebibyte.
  State Take(const std::function<void(const std::string& line)>& print);

 private:
  StackDump(std::vector<pid_t> pids, std::vector<pid_t> stopped_before, pid_t child, int fd);

  std::vector<pid_t> pids_;
  std::vector<pid_t> stopped_before_;  // these were already stopped before
  pid_t child_;
  OwnedFd process_;  // a pidfd of the child, which may have been reaped
  OwnedFd output_;
  bool finished_ = false;
  std::string line_;  // a line without its end
  size_t bytes_ = 0;
};

}  // namespace muster
