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
  /// Forks: the calling process has one thread. Errors: no pipe, no process.
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
  /// Ends the child; the caller reaps it with its other children. If the child had not finished,
  /// the
  /// threads that it may have stopped continue.
  ~StackDump();

  /// Readable when there is something to take.
  int fd() const { return output_.get(); }
  pid_t child() const { return child_; }

  enum class State { kMore, kFinished, kBroken };
  /// Gives `print` the lines that have come; does not wait. kBroken: the child ended too early, or
  /// printed more than a mebibyte.
  State Take(const std::function<void(const std::string& line)>& print);

 private:
  StackDump(std::vector<pid_t> pids, std::vector<pid_t> stopped_before, pid_t child, int fd);

  std::vector<pid_t> pids_;
  std::vector<pid_t> stopped_before_;  // these were already stopped
  pid_t child_;
  OwnedFd process_;  // a pidfd of it: it may have been reaped
  OwnedFd output_;
  bool finished_ = false;
  std::string line_;  // that has not ended yet
  size_t bytes_ = 0;
};

}  // namespace muster
