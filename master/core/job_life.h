#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "master/core/books.h"
#include "master/core/epoch_ends.h"
#include "master/core/grant_gate.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// The state of the job: whether it runs, drains or is over, and why.
///
/// Owns the state, the time when a drain of the job began, the GrantGate, and which dropped metrics
/// were told. Enforces of
/// docs/protocol.md, section 7: the job ends only when every shard is COMMITTED or FAILED; when
/// snapshots are requested at once; no shard is leased when the job is over. Pure; not thread-safe.
class JobLife {
 public:
  /// All of them outlive it.
  JobLife(const Books* books, Leasing* leasing, EpochEnds* epoch_ends);

  /// The run continues from the journal's state, or shows it.
  void Resume(const MetaRecord& meta, TimePoint now);
  JobState state() const { return state_; }
  const std::string& reason() const { return reason_; }
  bool over() const { return IsTerminal(state_); }
  /// What workers must do.
  JobDirective Directive() const;
  /// True if memory allows more grants.
  bool MayGrantMore() const { return gate_.open(); }
  /// True if the job can only continue after snapshots.
  bool NeedsSnapshots() const;

  /// Ends the job and every lease at once, so later parts of the same step find no lease. Requires
  /// that the job is not over.
  void End(JobState state, std::string_view reason, StepTime at);
  /// Ends the epochs that are over, and the job if it waits for nothing more. Call it after every
  /// step that may end the last thing that the job waits for.
  void CheckEnd(StepTime at);
  /// Ends the job if too many records were rejected.
  void CheckRejects(StepTime at);
  /// Checks if memory allows more grants, and reports dropped metrics.
  void CheckLimits(StepTime at);

  /// Stops granting. The job ends when no shard is leased or DONE any more, or after a timeout.
  void Drain(StepTime at);
  struct CancelOptions {
    std::string reason;
    bool as_failed = false;
  };
  /// Ends the job; a repeat changes nothing. kFailedPrecondition if the job has ended in another
  /// way. With `as_failed`, a job that is over is no error, because the caller only wants it to
  /// end.
  absl::Status Cancel(const CancelOptions& options, StepTime at);
  void Tick(StepTime at);

 private:
  /// True if every shard is COMMITTED or FAILED.
  bool AllSettled() const;
  /// Why a job with FAILED shards failed: the shards and their last reasons.
  std::string FailedText() const;

  const Books* const books_;
  Leasing* const leasing_;
  EpochEnds* const epoch_ends_;
  GrantGate gate_;
  JobState state_ = JobState::kRunning;
  std::string reason_;
  std::optional<TimePoint> drain_began_;
  /// So many of EpochTotals::metrics_dropped().
  size_t drops_told_ = 0;
};

}  // namespace muster
