#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/ask/query_commands.h"
#include "proto/status/job_status.h"

namespace muster::steer {

/// What `muster wait` waits for.
struct Awaited {
  enum class Kind : uint8_t { kEnd, kRunning, kNode };
  Kind kind = Kind::kEnd;
  std::string node;                       // only for kNode
  NodeState state = NodeState::kRunning;  // only for kNode
  std::optional<DrainState> drain;        // only for kNode, in place of `state`
};
/// Parses "end", "running", "worker-1=exited", or "ps-0=drained". InvalidArgument says what is
/// possible.
absl::StatusOr<Awaited> ParseAwaited(std::string_view text);
/// The result of a look at the job.
struct JobLook {
  bool runs = false;                // a run has the state directory
  std::optional<JobStatus> status;  // absent: there is none, or the master does not answer now
};
/// kEnd is reached when no run uses the state directory, and kRunning when a worker runs. A job
/// that does not run may be about to begin. Pure.
bool IsReached(const Awaited& awaited, const JobLook& look);
/// If waiting is useless, says what happened instead: the job ran at an earlier look, and has ended
/// without reaching the state. Empty if the state may still come. Pure.
std::string OutOfReach(const Awaited& awaited, const JobLook& look, bool ran);

/// The exit code of `muster run` for a job that ended in this state.
int ExitCodeOf(JobState state);

inline constexpr std::chrono::seconds kReachTimeout{300};

struct WaitOptions {
  QueryOptions query;
  std::string awaited = "end";
  /// If absent, there is no limit for "end". All other states may never come, so they have the
  /// limit kReachTimeout.
  std::optional<uint32_t> timeout_s;
};
/// `muster wait`. Returns the exit code of the process: for "end" that of the run, else 0. It is 1
/// if the time is over, or if the job has ended without reaching the state.
int WaitCommand(const WaitOptions& options);

}  // namespace muster::steer
