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
  std::string node;                       // of kNode
  NodeState state = NodeState::kRunning;  // of kNode
  std::optional<DrainState> drain;        // of kNode, in place of `state`
};
/// "end", "running", "worker-1=exited", "ps-0=drained". InvalidArgument: says what there is.
absl::StatusOr<Awaited> ParseAwaited(std::string_view text);
/// A look at the job.
struct JobLook {
  bool runs = false;                // a run has the state directory
  std::optional<JobStatus> status;  // absent: there is none, or the master does not answer now
};
/// kEnd is reached when no run has the state directory, kRunning when a worker runs. A job that
/// does not run may be about to begin. Pure.
bool IsReached(const Awaited& awaited, const JobLook& look);
/// Waiting is of no use any more: the job ran at an earlier look, and has ended without what is
/// awaited. Says what there is instead; empty: it may still come. Pure.
std::string OutOfReach(const Awaited& awaited, const JobLook& look, bool ran);

/// Of `muster run` for a job that ended so.
int ExitCodeOf(JobState state);

inline constexpr std::chrono::seconds kReachTimeout{300};

struct WaitOptions {
  QueryOptions query;
  std::string awaited = "end";
  /// Absent: no limit for "end", kReachTimeout for everything else, which may never come.
  std::optional<uint32_t> timeout_s;
};
/// `muster wait`. Returns the exit code of the process: for "end" that of the run, else 0. 1 when
/// the time is over, or the job has ended without what is awaited.
int WaitCommand(const WaitOptions& options);

}  // namespace muster::steer
