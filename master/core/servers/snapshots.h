#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "master/core/books.h"
#include "master/core/epoch_ends.h"
#include "master/core/job_life.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// Decides from the servers' snapshots which DONE shards are COMMITTED, and which run again because
/// partitions were restored from an older state.
///
/// Owns the names of files that no manifest names any more; PartitionTable has the rules for one
/// partition. Enforces the commit (docs/protocol.md, section 3, rule 6) and the replay (section 4),
/// both in the same step as their cause. Pure; not thread-safe.
class Snapshots {
 public:
  /// All of them outlive it.
  Snapshots(const Books* books, Ledger* ledger, PartitionTable* partitions, NodeTable* nodes,
            JobTotals* totals, Leasing* leasing, const EpochEnds* epoch_ends, JobLife* life)
      : books_(books),
        ledger_(ledger),
        partitions_(partitions),
        nodes_(nodes),
        totals_(totals),
        leasing_(leasing),
        epoch_ends_(epoch_ends),
        life_(life) {}

  /// Takes the snapshots that a server reports, and commits what follows.
  void Take(const ServerExchangeRequest& request, StepTime at);
  /// Makes the DONE shards COMMITTED that the snapshots of all partitions contain. CoreLimits says
  /// how many at once; the others wait for the next call.
  void Commit(StepTime at);
  /// True if parts that partitions confirmed under this restore epoch may have been lost since.
  bool MayLackParts(RestoreEpoch pushed_under) const {
    return pushed_under < books_->partitions.restore_epoch();
  }
  /// Partitions were restored from an older state because of `why`: work that their snapshots lack
  /// runs again.
  void Replay(const PartitionTable::Restored& restored, const std::string& why, StepTime at);
  /// Asks the server for the snapshots that are due. `hurry`: at once for what is behind.
  struct Hurry {
    bool all = false;
    /// Likewise for partitions whose snapshots lack something up to this.
    DoneSeq goal;
  };
  /// Until the job's first commit, each partition has a turn in every tenth of the interval, but at
  /// most once in this time: a short job, or one that is cancelled soon, loses little.
  static constexpr std::chrono::milliseconds kFirstIntervalMin{2'000};
  void Ask(ServerId server, ServerIncarnation incarnation, Hurry hurry, TimePoint now);
  /// As MasterCore::TakeUnusedFiles.
  std::vector<std::string> TakeUnusedFiles() { return std::exchange(unused_files_, {}); }

 private:
  /// The DONE shards up to this can become COMMITTED.
  DoneSeq Cut();
  /// These shards are COMMITTED now: counts them for their workers, and ends what waited for it.
  void TellCommitted(const Ledger::Committed& committed, StepTime at);
  /// Says which of the epochs are COMMITTED: all their shards are, and no further ones can come.
  /// One event names all neighbours, because events of short epochs would displace all others.
  void TellEpochs(const std::set<std::pair<DatasetId, EpochIndex>>& epochs, StepTime at);
  /// As Replay, in a group.
  void LoseParts(const PartitionTable::Restored& restored, const std::string& why, StepTime at);

  const Books* const books_;
  Ledger* const ledger_;
  PartitionTable* const partitions_;
  NodeTable* const nodes_;
  JobTotals* const totals_;
  Leasing* const leasing_;
  const EpochEnds* const epoch_ends_;
  JobLife* const life_;
  std::vector<std::string> unused_files_;
};

}  // namespace muster
