#pragma once

/// Rules of docs/protocol.md, and of the code, that can be removed one at a time. A test that finds
/// no lost update without a rule would not find a bug that we made either. The tables beside this
/// header say where each bug is, and plant.py writes it into copies of the sources; the sources
/// know nothing of it. What happens in the simulation's own sources asks IsPlanted. Real processes
/// can have one bug, no-reverify, through PlantedBugs of master/core/core_options.h, which no
/// release build has.
///
/// If one rule makes up for another, removing either shows nothing. The bug is then planted with a
/// *weakening*: something that the protocol allows but this implementation does not do. Alone, a
/// weakening must do no harm.
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

/// X(enumerator, name, where it belongs, with what it is planted, seeds within which it is found,
///   what is wrong)
#define MUSTER_PLANTED_BUG_LIST(X)                                                                 \
  X(kCutAtAcceptance, "cut-at-acceptance", "1", kNone, 20,                                         \
    "the cut is taken when a snapshot is accepted")                                                \
  X(kReplayKeepsSeq, "replay-keeps-seq", "2", kNone, 20,                                           \
    "a replayed shard keeps its old done_seq")                                                     \
  X(kNoReverify, "no-reverify", "3", kNone, 40, "a done under an older restore epoch is accepted") \
  X(kForgetAtCommit, "forget-at-commit", "4", kNone, 20,                                           \
    "a window is forgotten when its shard is COMMITTED, although old tokens may be in use")        \
  X(kPushIdHasToken, "push-id-has-token", "5", kNone, 20, "a push's identity includes its token")  \
  X(kFormerOwner, "former-owner", "8", kNone, 150, "a former owner's snapshot is accepted")        \
  X(kOwnerNotJournaled, "owner-not-journaled", "9", kNone, 20,                                     \
    "a new owner is told, but not journaled")                                                      \
  X(kTokensAgain, "tokens-again", "12", kNone, 20, "tokens start again with every master")         \
  X(kOlderSnapshot, "older-snapshot", "15", kNone, 100,                                            \
    "a late, older report replaces a newer one")                                                   \
  X(kLateOk, "late-ok", "16", kNone, 400,                                                          \
    "a late OK counts as if it were requested when it arrives")                                    \
  X(kVerdictsR, "verdicts-r", "17", kLateNews, 60, "a done names an R whose map the worker lacks") \
  X(kFloorNotKept, "floor-not-kept", "19", kLateNews, 3000, "the floor is not in the snapshot")    \
  X(kEpochUnchecked, "epoch-unchecked", "25", kNone, 1900, "parts are not checked against E(P)")   \
  X(kMissingIsOk, "missing-is-ok", "27", kNone, 20, "the worker takes MISSING for OK")             \
  X(kAskingAdds, "asking-adds", "28", kNone, 20, "a server that is asked for a minibatch adds it") \
  X(kAnswerUnsynced, "answer-unsynced", "section 8", kNone, 20,                                    \
    "answers (with cuts) leave before the sync")                                                   \
  X(kDeltaClean, "delta-clean", "section 8", kNone, 100,                                           \
    "rows of a delta count as clean before it is accepted")                                        \
  X(kPartNotAtom, "part-not-atom", "section 6", kNone, 20,                                         \
    "a part's tables are applied as parts of their own")                                           \
  X(kHalfInImage, "half-in-image", "section 6", kNone, 600,                                        \
    "a snapshot is taken while a part is half applied")                                            \
  X(kHalfLeft, "half-left", "section 6", kNone, 200,                                               \
    "a part stays half applied when its connection ends")                                          \
  X(kImageNotCut, "image-not-cut", "section 1", kNone, 600,                                        \
    "an image has rows that changed after its cut")                                                \
  X(kRandomRows, "random-rows", "section 6", kNone, 20, "new rows differ from process to process") \
  X(kPullCreates, "pull-creates", "section 6", kNone, 20, "a pull creates rows")                   \
  X(kRowNotInitialised, "row-not-initialised", "section 7", kNone, 20,                             \
    "a push does not initialise a row")                                                            \
  X(kEndWhenDone, "end-when-done", "section 7", kNone, 20, "END when every shard is DONE")         \
  X(kWholeTooEarly, "whole-too-early", "section 7", kNone, 20,                                     \
    "an epoch is forgotten although one of its shards must not be")                                \
  X(kThinnedNotWhole, "thinned-not-whole", "section 7", kNone, 20,                                 \
    "that a thinned out epoch is COMMITTED is not journaled")                                      \
  X(kForgetOnce, "forget-once", "section 7", kLanesForget, 30,                                     \
    "forgetting is not repeated after a restore")                                                  \
  X(kEvaluateReverified, "evaluate-reverified", "section 7", kNone, 1000,                          \
    "evaluate shards are checked for R")                                                           \
  X(kEvaluateRolledBack, "evaluate-rolled-back", "section 7", kNone, 800,                          \
    "an evaluation continues although its training is replayed")                                   \
  X(kMetricsWhenDone, "metrics-when-done", "section 7", kNone, 20, "metrics are merged at DONE")   \
  X(kServersAgain, "servers-again", "section 7", kNone, 20, "server incarnations start again")     \
  X(kNoMaxAge, "no-max-age", "section 7", kNone, 450, "a lease lives as long as its worker")       \
  X(kCommitAtMaxCut, "commit-at-max-cut", "section 3", kNone, 20,                                  \
    "COMMITTED at the largest cut, not the smallest")                                              \
  X(kReplayLargest, "replay-largest", "section 4", kNone, 20,                                      \
    "only shards after the largest restored cut are replayed")                                     \
  X(kNoReplay, "no-replay", "section 4", kNone, 20, "nothing is replayed")                         \
  X(kRestoreEpochStays, "restore-epoch-stays", "section 4", kNone, 20,                             \
    "a restore leaves R as it is")                                                                 \
  X(kOwnerEpochStays, "owner-epoch-stays", "section 4", kNone, 20, "a restore leaves E(P) alone")  \
  X(kManifestNotJournaled, "manifest-not-journaled", "section 3", kNone, 20,                       \
    "an acceptance is forgotten")                                                                  \
  X(kFilesTooEarly, "files-too-early", "section 3", kNone, 20,                                     \
    "unused files are deleted before the sync")                                                    \
  X(kChainShared, "chain-shared", "section 3", kLateBase, 20,                                      \
    "a chain may share a part of the accepted one")                                                \
  X(kFloorNotTaken, "floor-not-taken", "section 3", kNone, 700,                                    \
    "forgetting does not raise the floor")                                                         \
  X(kStaleApplied, "stale-applied", "section 2", kNone, 150,                                       \
    "tokens are not checked against the floor")                                                    \
  X(kWindowNotKept, "window-not-kept", "section 3", kNone, 20,                                     \
    "the window is not in the snapshot")                                                           \
  X(kOwnReloads, "own-reloads", "section 5", kNone, 50, "a repeated OWN loads the snapshot again") \
  X(kStaleIsOk, "stale-is-ok", "section 2", kRevivedLease, 700, "the worker takes STALE for OK")   \
  X(kWrongOwnerIsOk, "wrong-owner-is-ok", "section 2", kNone, 50,                                  \
    "the worker takes WRONG_OWNER for OK")                                                         \
  X(kRetryIsOk, "retry-is-ok", "section 2", kNone, 20, "the worker takes RETRY for OK")            \
  X(kDoneEarly, "done-early", "section 2", kNone, 20, "done before every part is OK")              \
  X(kReverifyInWords, "reverify-in-words", "section 2", kNone, 20,                                 \
    "a part that was OK before a restore counts as OK after it")                                   \
  X(kVersionOfAnyEpoch, "version-of-any-epoch", "section 2", kNone, 20,                            \
    "rows of a former owner epoch count as unchanged")                                             \
  X(kLostInPart, "lost-in-part", "section 2", kNone, 20,                                           \
    "only the first of the minibatches that a restore has undone runs again")                      \
  X(kDoneWithoutLease, "done-without-lease", "section 2", kNone, 1300,                             \
    "a done counts without a lease")                                                               \
  X(kForceBaseForgotten, "force-base-forgotten", "code", kLateNews, 20,                            \
    "a delta is written after an unknown acceptance")                                              \
  X(kAcceptsAny, "accepts-any", "code", kLateNews, 20, "any acceptance counts as one's own")       \
  X(kChargedAgain, "charged-again", "code", kNone, 1500,                                           \
    "a repeated report of a failure is charged twice")                                             \
  X(kBaseLacksClean, "base-lacks-clean", "code", kNone, 20, "a base has the dirty rows only")      \
  X(kUnchangedAlways, "unchanged-always", "code", kNone, 20,                                       \
    "a partition counts as unchanged although it changed")                                         \
  X(kFailedWriteCounts, "failed-write-counts", "code", kNone, 700,                                 \
    "rows of a failed write count as clean")                                                       \
  X(kAnyLastFile, "any-last-file", "code", kLateBase, 20,                                          \
    "a chain may get a file of another snapshot")                                                  \
  X(kGrantOnce, "grant-once", "code", kAgeless, 600, "a lost grant is not given again")            \
  X(kRangeNotJournaled, "range-not-journaled", "section 9", kNone, 40,                             \
    "a range of a topic is leased before it is journaled")                                         \
  X(kCutNotJournaled, "cut-not-journaled", "section 9", kNone, 60,                                 \
    "the end of the cut part of a topic is forgotten")                                             \
  X(kPrefixOfNewest, "prefix-of-newest", "section 9", kNone, 40,                                   \
    "COMMITTED is reported up to the newest open range, not the oldest")                           \
  X(kEndsWhenSeen, "ends-when-seen", "section 9", kNone, 40,                                       \
    "a stream is over when its end is known, even if it is not cut")                               \
  X(kNewestIsLast, "newest-is-last", "section 3", kBusyGrace, 300,                                 \
    "a re-asserted lease hides the newer token of its shard from forgetting")                      \
  X(kEarlierTokens, "earlier-tokens", "section 3", kBusyGrace, 30,                                 \
    "tokens of earlier masters do not count as issued for every shard")                            \
  X(kEvaluateEarly, "evaluate-early", "code", kNone, 20, "evaluation does not wait for its epoch") \
  X(kPredictEarly, "predict-early", "section 13", kNone, 20,                                       \
    "predictions do not wait for all training")                                                    \
  X(kPredictAnyMap, "predict-any-map", "13.2", kLateNews, 2000,                                    \
    "outputs are published although a map has named a restored owner")                             \
  X(kEvaluationOvertaken, "evaluation-overtaken", "section 10", kNone, 50,                         \
    "an epoch does not wait for the evaluation of the one before")                                 \
  X(kAucReplaced, "auc-replaced", "section 7", kNone, 20,                                          \
    "a shard's histograms replace those of the shards before")                                     \
  X(kToldVersionChanges, "told-version-changes", "section 5", kNone, 20,                           \
    "a version of the map that was told gets another content")                                     \
  X(kEarlierChanges, "earlier-changes", "section 5", kNone, 100,                                   \
    "after a restart of the master nothing in the map counts as changed before it")                \
  X(kChangesOnAnyMap, "changes-on-any-map", "section 5", kLateNews, 200,                           \
    "a worker applies changes of the map though it lacks some before them")                        \
  X(kEpochEndsWhenDone, "epoch-ends-when-done", "section 10", kNone, 40,                           \
    "an epoch ends when its shards are DONE")                                                      \
  X(kLossNotJournaled, "loss-not-journaled", "section 9", kNone, 60,                               \
    "that retention took a range is forgotten, its failure is not")                                \
  X(kNoLook, "no-look", "section 11", kNone, 60, "a master answers without a look at the fence")   \
  X(kLookBeforeSync, "look-before-sync", "section 11", kNone, 1500,                                \
    "a master looks at the fence before its sync, not after it")                                   \
  X(kNoLookAtStart, "no-look-at-start", "section 11", kNone, 1000,                                 \
    "a master's first answer needs no look, so two may have one incarnation")                      \
  X(kCopyBeforeClose, "copy-before-close", "section 11", kNone, 1000,                              \
    "the journal is copied before its master is closed out")                                       \
  X(kSweepsNewer, "sweeps-newer", "section 11", kNone, 150,                                        \
    "a new run deletes files that a newer master asked for")                                       \
  X(kGroupAppliesVote, "group-applies-vote", "12.1", kNone, 20,                                    \
    "a member applies its sum when it has voted")                                                  \
  X(kGroupStepNotJournaled, "group-step-not-journaled", "12.1", kNone, 20,                         \
    "the shard of a step is journaled, the step is not")                                           \
  X(kGroupAttemptNotJournaled, "group-attempt-not-journaled", "12.2", kNone, 20,                   \
    "an attempt is told, but not journaled")                                                       \
  X(kGroupCommitsAnySum, "group-commits-any-sum", "12.3", kNone, 4000,                             \
    "a commit counts for the sum of any attempt")                                                  \
  X(kGroupCountsAnyVote, "group-counts-any-vote", "12.4", kNone, 60, "any attempt's vote counts")  \
  X(kGroupMajority, "group-majority", "12.4", kNone, 60,                                           \
    "a step happens when most members have voted")                                                 \
  X(kGroupTakesAnySum, "group-takes-any-sum", "12.5", kNone, 120,                                  \
    "parts of another attempt are added")                                                          \
  X(kGroupForgetsSum, "group-forgets-sum", "12.6", kNone, 400,                                     \
    "a new attempt drops a sum before its commit is looked at")                                    \
  X(kGroupSharesTwice, "group-shares-twice", "12.7", kNone, 120,                                   \
    "a survivor's minibatches are divided again")                                                  \
  X(kGroupLabelOfRequest, "group-label-of-request", "12.8", kNone, 20,                             \
    "a copy of the state gets the label that was asked for")                                       \
  X(kGroupLearnerSkips, "group-learner-skips", "12.9", kNone, 60,                                  \
    "a learner with a copy counts as one with the newest state")                                   \
  X(kGroupBelowCheckpoint, "group-below-checkpoint", "12.11", kNone, 800,                          \
    "a rollback goes below the checkpoint")                                                        \
  X(kGroupKeepsOldState, "group-keeps-old-state", "12.11", kNone, 4000,                            \
    "a state keeps its label over a rollback of its step")                                         \
  X(kGroupVotesUnacknowledged, "group-votes-unacknowledged", "12.18", kNone, 60,                   \
    "a member votes before partitions have acknowledged what it has pushed")                       \
  X(kGroupNewestRestore, "group-newest-restore", "12.18", kNone, 500,                              \
    "a vote names the newest R under which something was pushed, not the oldest")                  \
  X(kGroupVoteAfterRestore, "group-vote-after-restore", "12.20", kNone, 500,                       \
    "a restore between the pushes of a step and the step is ignored")                              \
  X(kGroupLackNotJournaled, "group-lack-not-journaled", "12.20", kNone, 700,                       \
    "that a step lacks parts is not journaled")                                                    \
  X(kGroupReplayAfterRestore, "group-replay-after-restore", "12.21", kNone, 3000,                  \
    "a replay counts although partitions were restored since")                                     \
  X(kGroupReplayedAsOfStep, "group-replayed-as-of-step", "12.21", kNone, 800,                      \
    "a replayed shard counts as pushed when its step happened")                                    \
  X(kGroupCommitsLacking, "group-commits-lacking", "12.22", kNone, 700,                            \
    "a shard that lacks parts becomes COMMITTED")                                                  \
  X(kGroupCommitsUnstored, "group-commits-unstored", "12.22", kNone, 40,                           \
    "COMMITTED does not wait for a checkpoint")                                                    \
  X(kGroupFloorInUse, "group-floor-in-use", "12.23", kNone, 4000,                                  \
    "the floor is the token of the step in work")                                                  \
  X(kGroupStatesDiffer, "group-states-differ", "12.24", kNone, 20, "states are not compared")      \
  X(kGroupCountsOneVote, "group-counts-one-vote", "12.24", kNone, 800, "one vote is a majority")   \
  X(kGroupOwnRecords, "group-own-records", "12.25", kNone, 20, "members count their own records")

/// X(enumerator, name, what is weaker)
#define MUSTER_WEAKENING_LIST(X)                                                                 \
  X(kNone, "", "")                                                                               \
  X(kLateNews, "late-news", "what an answer of the master says may come with a later answer")    \
  X(kRevivedLease, "revived-lease", "an ended lease goes on when no worker had its shard since") \
  X(kLateBase, "late-base",                                                                      \
    "a server forgets accepted files, and writes a base when it is refused")                     \
  X(kLanesForget, "lanes-forget", "a lane keeps nothing for partitions that it loads later")     \
  X(kAgeless, "ageless", "no lease ends for lack of progress, and no trainer hangs")             \
  X(kBusyGrace, "busy-grace",                                                                    \
    "a long grace period, in which shards are granted and forgotten; low floors")

namespace muster {

enum class PlantedBug : uint8_t {
  kNone,
#define MUSTER_PLANTED_BUG(enumerator, ...) enumerator,
  MUSTER_PLANTED_BUG_LIST(MUSTER_PLANTED_BUG)
#undef MUSTER_PLANTED_BUG
};
enum class Weakening : uint8_t {
#define MUSTER_WEAKENING(enumerator, name, what) enumerator,
  MUSTER_WEAKENING_LIST(MUSTER_WEAKENING)
#undef MUSTER_WEAKENING
};

struct PlantedBugText {
  PlantedBug bug;
  std::string_view name;
  std::string_view rule;  // number in docs/protocol.md, section 8, or section
  Weakening weakening;
  uint64_t within;  // tests/sim finds it in so many seeds
  std::string_view what;
};
inline constexpr PlantedBugText kPlantedBugs[] = {
#define MUSTER_PLANTED_BUG(enumerator, name, rule, weakening, within, what) \
  {PlantedBug::enumerator, name, rule, Weakening::weakening, within, what},
    MUSTER_PLANTED_BUG_LIST(MUSTER_PLANTED_BUG)
#undef MUSTER_PLANTED_BUG
};

struct WeakeningText {
  Weakening weakening;
  std::string_view name;
  std::string_view what;
};
inline constexpr WeakeningText kWeakenings[] = {
#define MUSTER_WEAKENING(enumerator, name, what) {Weakening::enumerator, name, what},
    MUSTER_WEAKENING_LIST(MUSTER_WEAKENING)
#undef MUSTER_WEAKENING
};

/// What is planted in this process; set between runs by its one thread.
inline PlantedBug planted_bug = PlantedBug::kNone;
inline Weakening weakening = Weakening::kNone;

/// The bug or weakening of this name; an unknown name does not compile.
struct PlantName {
  consteval PlantName(const char* name) {  // NOLINT: implicit, for IsPlanted
    for (const PlantedBugText& one : kPlantedBugs) {
      if (one.name == name) bug = one.bug;
    }
    for (const WeakeningText& one : kWeakenings) {
      if (one.name == name) weakening = one.weakening;
    }
    if (bug == PlantedBug::kNone && weakening == Weakening::kNone) throw "no such name";
  }
  PlantedBug bug = PlantedBug::kNone;
  Weakening weakening = Weakening::kNone;
};
inline bool IsPlanted(PlantName name) {
  return name.bug != PlantedBug::kNone ? name.bug == planted_bug : name.weakening == weakening;
}

/// What a bug remembers, in an object of the sources.
template <typename Key, typename Value>
class PlantedMemory {
 public:
  void Keep(const Key& key, const Value& value) { kept_.insert_or_assign(key, value); }
  std::optional<Value> Of(const Key& key) const {
    const auto kept = kept_.find(key);
    return kept == kept_.end() ? std::nullopt : std::optional(kept->second);
  }

 private:
  std::map<Key, Value> kept_;
};

}  // namespace muster
