#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "master/group_core/group_data.h"
#include "master/group_core/group_options.h"
#include "master/group_core/group_records.h"
#include "master/group_core/stored_states.h"
#include "proto/messages/group_control.h"

namespace muster {

/// A synchronous group on the master's side (docs/protocol.md, section 12), as a deterministic
/// state machine: who is a member, when a step has happened, when the state is captured, and when
/// steps are undone. Every method that is not const is one step of it. The caller journals what
/// Collect() returns, with the mutations of the GroupData, synced, all or nothing; only then may an
/// answer leave.
///
/// It never reads a clock, and checks what comes from the network. Not thread-safe: it has one
/// owner.
class GroupCore {
 public:
  /// Goes on from the journal's records: nobody has a place until enough processes have called.
  /// `data` outlives it.
  GroupCore(GroupOptions options, MasterIncarnation incarnation, GroupRecords records,
            GroupData* data, TimePoint now);
  ~GroupCore();
  GroupCore(const GroupCore&) = delete;
  GroupCore& operator=(const GroupCore&) = delete;

  /// A call of a process. A call that is older than one before it changes nothing.
  /// kFailedPrecondition if the process is dead, or if another one has its name.
  absl::Status Exchange(const GroupExchangeRequest& request, TimePoint now);
  /// The process has ended; `incarnation` 0: whichever process the worker has.
  void Gone(const std::string& worker, uint64_t incarnation, TimePoint now);
  /// The process has ended by its own fault in the shard of this token: that counts for the shard,
  /// if the step is still in work.
  void Crashed(const std::string& worker, uint64_t incarnation, LeaseToken token,
               std::string_view reason, TimePoint now);
  /// The worker is to take part in no step after the current one; or may again.
  void Drain(const std::string& worker, bool drains, TimePoint now);
  /// Call it about every 50 ms, and after every change of the data.
  void Tick(TimePoint now);
  /// Time passed that is no process's fault.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);

  /// The number of the newest answer for this process. 0: the process is not known.
  uint64_t NewsFor(const std::string& worker, uint64_t incarnation) const;
  /// Everything that the process must know, without the contents of `work.work` and `ahead`, and
  /// with the directive kWork: the caller fills them in.
  GroupExchangeReply ReplyFor(const std::string& worker, uint64_t incarnation) const;
  /// True if the process has sent a call after the one of this sequence.
  bool HasNewerCall(const std::string& worker, uint64_t incarnation, uint64_t sequence) const;
  /// The shard that probably follows the one in work.
  std::optional<ShardId> ahead() const;
  /// How many steps are not in the checkpoint.
  uint64_t steps_after_checkpoint() const;
  /// The model, and the stored state that counts now.
  const GroupModelRecord& model() const;
  const std::optional<CheckpointRecord>& checkpoint() const;
  /// True while the worker's process is a member.
  bool IsMember(const std::string& worker) const;
  /// Whether processes can read and write stored states.
  StoredStates stored_states() const;

  /// Appends what changed since the last call.
  void Collect(std::vector<GroupMutation>* mutations);
  /// Stored objects that no checkpoint names any more; delete them after the sync.
  std::vector<std::string> TakeUnusedObjects();

  struct ProcessView {
    std::string worker;
    uint64_t incarnation = 0;
    GroupStanding standing = GroupStanding::kUnknown;
    /// Of a member.
    uint32_t rank = 0;
    MemberPhase phase = MemberPhase::kIdle;
    std::optional<StateLabel> state;
    /// Minibatches of the step in work.
    uint32_t share = 0;
    uint64_t minibatch_us = 0;
    std::string waits;
    /// Other members accuse it, and are asked who lives.
    bool suspected = false;
    /// The group waits for its part: its minibatches, its vote, a step that it applies, or, if it
    /// is a learner, the state that others offer it. Also if its threads hang.
    bool awaited = false;
    uint64_t moved = 0;
  };
  struct View {
    LineageNumber lineage;
    AttemptNumber attempt;
    StepNumber step;
    /// Of the checkpoint; 0: none.
    StepNumber checkpoint;
    /// The shard of the step in work.
    std::optional<ShardId> shard;
    /// Why nothing is in work; empty: something is.
    std::string waits;
    std::vector<ProcessView> processes;
  };
  View Show() const;

 private:
  struct Parts;
  /// Does everything that is due.
  void Advance(TimePoint now);
  /// The job has ended.
  void Close();
  /// What is due for a step with members.
  void AdvanceStep(TimePoint now);
  void JudgeStates();
  void JudgeStall(TimePoint now);

  std::unique_ptr<Parts> parts_;
};

}  // namespace muster
