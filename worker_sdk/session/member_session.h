#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/session.h"
#include "proto/messages/control.h"
#include "store/object_store.h"
#include "worker_sdk/core/part_sender.h"
#include "worker_sdk/readers/shard_reader.h"
#include "worker_sdk/session/loop_session.h"
#include "worker_sdk/session/session_tls.h"

namespace muster::internal {

/// The records of the shard of a step.
struct StepRecords {
  sdk::ShardReader* reader = nullptr;  // lives as long as the session
  std::shared_ptr<const sdk::ShardRecords> records;
};

/// What a member of a group (GroupImpl) needs of its session. Thread-safe. Its calls may be made
/// with the mutex of the MemberDesk held, apart from those that block.
class MemberSession : public LoopSession {
 public:
  virtual const SessionOptions& options() const = 0;
  virtual const SessionTls& tls() const = 0;
  virtual uint64_t incarnation() const = 0;

  // ---- the group ----

  /// Where the group stores its state. kFailedPrecondition: the job has no group.
  virtual absl::StatusOr<std::unique_ptr<ObjectStore>> OpenGroupStore() const = 0;
  /// The process gets a group. kFailedPrecondition: it has one already.
  virtual absl::Status TakeGroup() = 0;
  /// The group does not exist any more. `calls`: the number of its last call to the master.
  virtual void ReturnGroup(uint64_t calls) = 0;
  /// The number of the last call of the groups before.
  virtual uint64_t group_calls() = 0;
  /// The group is over for this process.
  virtual void EndGroup() = 0;
  /// The trainer begins or ends a wait for the group, which counts as waiting for a shard.
  virtual void WaitsForGroup(bool waits) = 0;

  // ---- its steps ----

  /// Blocks. Errors as of ShardReader::Read.
  virtual absl::StatusOr<StepRecords> ReadStep(const ShardWork& work) = 0;
  /// This run of a step is of use from now on, and no other one; 0: none is.
  virtual void BeginStepRun(RunNumber run) = 0;
  /// A loop over minibatches of a step begins and ends, for the slot file.
  virtual void EnterStep(LeaseToken token) = 0;
  virtual void LeaveStep(LeaseToken token) = 0;
  /// A loop begins a minibatch of a step; false: the session has failed.
  virtual bool StartStepMinibatch(LeaseToken token) = 0;
  virtual void EndStepMinibatch(size_t records, bool evaluate) = 0;
  /// Pushes the rows of a minibatch, and blocks while too many pushes are not acknowledged.
  virtual void PushOfStep(const sdk::PushIdentity& push,
                          std::shared_ptr<const sdk::RowBatch> batch) = 0;
  /// Blocks until what the run has pushed is in the tables, and returns HeldSum::pushed_under. None
  /// if the run is of no use any more.
  virtual std::optional<RestoreEpoch> AwaitStepPushes(RunNumber run) = 0;

  // ---- its end ----

  /// Why the session has failed; OK if it has not.
  virtual absl::Status status() = 0;
  /// Session::Leave was called.
  virtual bool leaving() const = 0;
  /// Of each exchange with the master, how it ended. kUnavailable: the master has been away for
  /// longer than SessionOptions::master_away_max_ms.
  virtual absl::Status JudgeAbsence(const absl::Status& answer) = 0;
  /// Asks SessionOptions::interrupted, if there is one. If it says so, the session fails. Why the
  /// session has failed; OK if it has not.
  virtual absl::Status AskInterrupted() = 0;
};

/// The part of a session that is for a member, where SessionImpl need not be known.
MemberSession& MemberSessionOf(SessionImpl& session);

}  // namespace muster::internal
