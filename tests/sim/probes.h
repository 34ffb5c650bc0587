#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Counters of rare paths: a simulation that never takes them proves nothing about them.
/// X(enumerator, name, what happened)
#define MUSTER_SIM_PROBES(X)                                                          \
  X(kReplay, "replay", "a DONE shard runs again after a restore")                     \
  X(kReverify, "reverify", "a done that a restore made doubtful")                     \
  X(kAskedThere, "asked-there", "a doubted part that its partition still has")        \
  X(kAskedMissing, "asked-missing", "a doubted part that its partition lacks")        \
  X(kPartialRun, "partial-run", "a run of the minibatches that a restore has undone") \
  X(kSkipped, "skipped-part", "a part answered OK from the window")                   \
  X(kStaleLease, "stale-lease", "a part below the floor refused")                     \
  X(kWrongOwner, "wrong-owner", "a part for another owner epoch refused")             \
  X(kRetry, "retry", "a part for a partition that loads")                             \
  X(kHalfPart, "half-part", "a part that took several slices")                        \
  X(kHeldPart, "held-part", "a part that waited for another one to be whole")         \
  X(kHalfAbandoned, "half-abandoned", "half applied when its connection died")        \
  X(kImageWaits, "image-waits", "an image that waited for a part to be whole")        \
  X(kZombiePush, "zombie-push", "a push to a server whose place another has taken")   \
  X(kReasserted, "reasserted", "a lease told to a restarted master")                  \
  X(kReasserted2, "reasserted-done", "a done under a lease of an earlier master")     \
  X(kExpired, "expired-lease", "a lease ended for silence or lack of progress")       \
  X(kRefusedDone, "refused-done", "a done without a lease")                           \
  X(kRegranted, "regranted", "a lost grant given again under its token")              \
  X(kRepeatedVerdict, "repeated-verdict", "a done told again after its acceptance")   \
  X(kOvertakenWorker, "overtaken-worker", "a worker's call that a newer overtook")    \
  X(kOvertakenServer, "overtaken-server", "a server's call that a newer overtook")    \
  X(kUnknownServer, "unknown-server", "a call of a server declared dead")             \
  X(kSupersededServer, "superseded-server", "a registration after being replaced")    \
  X(kSupersededWorker, "superseded-worker", "a call of a worker that was replaced")   \
  X(kDeltaChain, "delta-chain", "a base and deltas restored")                         \
  X(kLongChain, "long-chain", "a base written because the chain was full or large")   \
  X(kUnacceptedDelta, "unaccepted-delta", "rows of a snapshot never accepted again")  \
  X(kUnchanged, "unchanged", "a cut reported without a file")                         \
  X(kFormerSnapshot, "former-snapshot", "reported by a server declared dead")         \
  X(kOvertakenSnapshot, "overtaken-snapshot", "reported in a call overtaken")         \
  X(kRepeatedSnapshot, "repeated-snapshot", "reported again after its acceptance")    \
  X(kRefusedSnapshot, "refused-snapshot", "of an epoch or a master that is over")     \
  X(kRepeatedReport, "repeated-report", "a busy lane's earlier report said again")    \
  X(kForget, "forget", "partitions told what to forget")                              \
  X(kForgetAgain, "forget-again", "told again after a restore")                       \
  X(kForgetEpoch, "forget-epoch", "all shards of an epoch")                           \
  X(kThinnedEpoch, "thinned-epoch", "an epoch that was thinned out")                  \
  X(kFloor, "floor", "a restored partition with a floor")                             \
  X(kFailedLoad, "failed-load", "a load that failed and was tried again")             \
  X(kTornFile, "torn-file", "a torn file refused")                                    \
  X(kFullDisk, "full-disk", "a snapshot that found no room")                          \
  X(kGroupCommit, "group-commit", "several requests in one sync")                     \
  X(kMasterDiesUnsynced, "master-dies-unsynced", "between write and sync")            \
  X(kUnsyncedFound, "unsynced-found", "and what was written is found again")          \
  X(kJournalError, "journal-error", "the journal could not be written")               \
  X(kUnusedFile, "unused-file", "a file of no manifest deleted")                      \
  X(kOrphanFile, "orphan-file", "an unnamed file deleted at a run's start")           \
  X(kDrain, "drain", "a drain that ended in DRAINED")                                 \
  X(kDrainedWorker, "drained-worker", "a worker alone that was told to leave")        \
  X(kDrainedServer, "drained-server", "a server alone that ended snapshotted")        \
  X(kDrainTimeout, "drain-timeout", "a server alone whose snapshots took too long")   \
  X(kRunRestart, "run-restart", "everything killed and run again")                    \
  X(kPowerLoss, "power-loss", "a power cut that took an unsynced file or batch")      \
  X(kGrace, "grace", "a grace period with leases outstanding")                        \
  X(kLateReply, "late-reply", "an answer after the call was given up")                \
  X(kDoubleReply, "double-reply", "an answer that came twice")                        \
  X(kTrainerFailure, "trainer-failure", "a shard failed by its trainer")              \
  X(kTrainerCrash, "trainer-crash", "a process that crashed in a shard")              \
  X(kHandedBack, "handed-back", "a shard given up without a reason")                  \
  X(kAbandoned, "abandoned", "a worker that left in the middle")                      \
  X(kFailedShard, "failed-shard", "FAILED after too many failures")                   \
  X(kRetriedShard, "retried-shard", "FAILED and tried again")                         \
  X(kLateTable, "late-table", "a table registered after the first push")              \
  X(kKeptEpoch, "kept-epoch", "the weights of an epoch kept")                         \
  X(kEvaluateAgain, "evaluate-again", "an evaluate shard run again")                  \
  X(kNotPublished, "not-published", "outputs of a run whose lease was lost")          \
  X(kLostWork, "lost-work", "a loop that found its lease gone")                       \
  X(kServerZombie, "server-zombie", "two processes of one server, both registered")   \
  X(kWorkerZombie, "worker-zombie", "two processes of one worker, both at work")      \
  X(kMasterPause, "master-pause", "a master that stood still and went on")            \
  X(kTakeOver, "take-over", "a master that takes the journal from another machine")   \
  X(kFenced, "fenced", "a master that finds its journal closed, and ends")            \
  X(kOldMasterCalled, "old-master-called", "a call that reaches it meanwhile")        \
  X(kHungTrainer, "hung-trainer", "a loop that stands still while its worker lives")  \
  X(kLostPartition, "lost-partition", "a server that says it has lost a partition")   \
  X(kForgottenWorker, "forgotten-worker", "alive, and all that it held is forgotten") \
  X(kForgottenPart, "forgotten-part", "a part that comes from it after all")          \
  X(kLateNews, "late-news", "a piece of an answer that comes with a later one")       \
  X(kMapChanges, "map-changes", "a map told as what has changed in it")               \
  X(kWholeMapWanted, "whole-map-wanted", "changes that a worker could not apply")     \
  X(kUnchangedRows, "unchanged-rows", "a pull whose worker held the rows already")    \
  X(kStreamRange, "stream-range", "a shard of a topic that was cut while it grew")    \
  X(kPartialRange, "partial-range", "a shard that was cut after its delay")           \
  X(kManyRanges, "many-ranges", "a shard of several topic partitions")                \
  X(kEmptyMinibatch, "empty-minibatch", "a minibatch of gaps alone")                  \
  X(kBrokerDown, "broker-down", "a look at a topic whose brokers were away")          \
  X(kStalledRead, "stalled-read", "a trainer that waited for the brokers")            \
  X(kLostRange, "lost-range", "a range that retention took, and that is tried again") \
  X(kRetention, "retention", "COMMITTED records that retention took")                 \
  X(kLostMessage, "lost-message", "a message that never came")                        \
  X(kDoubledMessage, "doubled-message", "a message that came twice")                  \
  X(kLateMessage, "late-message", "a message that came much later")                   \
  X(kCutMessage, "cut-message", "a message on a link that was cut")                   \
  X(kGroupApply, "group-apply", "a step of a group applied by a member")              \
  X(kGroupReplay, "group-replay", "a missed step applied from a fetched sum")         \
  X(kGroupCopy, "group-copy", "a state copied from members")                          \
  X(kGroupCheckpointRead, "group-checkpoint-read", "a state read from the store")     \
  X(kGroupCapture, "group-capture", "a copy of the state for others, or the store")   \
  X(kGroupSumMissing, "group-sum-missing", "a missed sum that no member has")         \
  X(kGroupKeptGradients, "group-kept-gradients", "that serve the next attempt")       \
  X(kGroupSuspects, "group-suspects", "a member that another cannot reach")           \
  X(kGroupRestart, "group-restart", "a process that cannot give its state again")     \
  X(kGroupDropsState, "group-drops-state", "a state that most members have not")      \
  X(kGroupLacksParts, "group-lacks-parts", "a step of which a restore took parts")    \
  X(kGroupPushedAgain, "group-pushed-again", "a minibatch of such a step, replayed")  \
  X(kGroupReplayed, "group-replayed", "such a step that has its parts again")         \
  X(kGroupRollback, "group-rollback", "steps undone since nobody had them")           \
  X(kWire, "wire", "a push that was encoded and decoded, and answered")

namespace muster::sim {

enum class Probe : uint8_t {
#define MUSTER_SIM_PROBE(enumerator, name, what) enumerator,
  MUSTER_SIM_PROBES(MUSTER_SIM_PROBE)
#undef MUSTER_SIM_PROBE
};
#define MUSTER_SIM_PROBE(enumerator, name, what) +1
inline constexpr size_t kProbeCount = 0 MUSTER_SIM_PROBES(MUSTER_SIM_PROBE);
#undef MUSTER_SIM_PROBE

struct ProbeText {
  std::string_view name;
  std::string_view what;
};
inline constexpr std::array<ProbeText, kProbeCount> kProbeTexts = {{
#define MUSTER_SIM_PROBE(enumerator, name, what) {name, what},
    MUSTER_SIM_PROBES(MUSTER_SIM_PROBE)
#undef MUSTER_SIM_PROBE
}};

struct Probes {
  std::array<uint64_t, kProbeCount> counts{};
  void Hit(Probe probe, uint64_t times = 1) { counts[static_cast<size_t>(probe)] += times; }
};

}  // namespace muster::sim
