#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "master/core/books.h"
#include "master/core/grant_gate.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// The state of the job: whether it runs, drains or is over, and why.
///
/// Owns the state, when a drain of the job began, and whether memory allows that more is granted.
/// Keeps of docs/protocol.md, section 7, that the job ends only when every shard is COMMITTED or
/// FAILED, and when snapshots are asked for at once; and that nothing is on lease when it is over.
/// Pure; not thread-safe.
class JobLife {
 public:
  /// Both outlive it.
  JobLife(Books* books, Leasing* leasing);

  /// The run goes on, or is shown, as the journal has it.
  void Resume(const MetaRecord& meta, TimePoint now);
  JobState state() const { return state_; }
  const std::string& reason() const { return reason_; }
  bool over() const { return IsTerminal(state_); }
  /// What workers are to do.
  JobDirective Directive() const;
  /// Memory allows that more is granted.
  bool MayGrantMore() const { return gate_.open(); }
  /// Nothing goes on before there are snapshots.
  bool NeedsSnapshots() const;

  /// Ends the job, and at once every lease: what comes later in the same step finds none. Requires
  /// that it is not over.
  void End(JobState state, std::string_view reason, StepTime at);
  /// Ends the job if nothing is left to wait for. To be called after every step that may be the
  /// last one that it waited for.
  void CheckEnd(StepTime at);
  /// Ends the job if too many records were rejected.
  void CheckRejects(StepTime at);
  /// Looks whether memory allows that more is granted, and tells what was dropped.
  void CheckLimits(StepTime at);

  /// Nothing more is granted; the job ends when nothing is on lease or DONE any more, or in time.
  void Drain(StepTime at);
  struct CancelOptions {
    std::string reason;
    bool as_failed = false;
  };
  /// Ends the job; a repeat changes nothing. kFailedPrecondition when it has ended otherwise, but
  /// not for `as_failed`: who gives up a job that is over has nothing left to do.
  absl::Status Cancel(const CancelOptions& options, StepTime at);
  void Tick(StepTime at);

 private:
  /// Whether every shard has come to its end.
  bool AllSettled() const;
  /// Why a job with FAILED shards failed: which, and their last reasons.
  std::string FailedText() const;

  Books* const books_;
  Leasing* const leasing_;
  GrantGate gate_;
  JobState state_ = JobState::kRunning;
  std::string reason_;
  std::optional<TimePoint> drain_began_;
};

}  // namespace muster
