#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "master/core/durable_state.h"
#include "master/core/servers/partition_table.h"

namespace muster {

/// The epochs whose weights are kept: for each, the snapshot of every partition at its end. The
/// files of these snapshots are not deleted when newer ones replace them. Pure; not thread-safe.
class KeptEpochs {
 public:
  using Records = std::map<EpochIndex, std::map<PartitionId, Manifest>>;

  /// `kept`: as the journal has them, of a job with so many partitions.
  KeptEpochs(const Records& kept, uint32_t partitions);

  /// Keeps the snapshots that count now as those of the epoch. Requires that it is not kept yet.
  void Keep(EpochIndex epoch, const PartitionTable& partitions);
  /// Keeps the epoch no longer. Appends the files that nothing names any more to `unused`. Requires
  /// that it is kept.
  void Drop(EpochIndex epoch, const PartitionTable& partitions, std::vector<std::string>* unused);

  /// By epoch, the snapshots by partition.
  const std::map<EpochIndex, std::vector<Manifest>>& epochs() const { return epochs_; }
  /// Whether a snapshot of a kept epoch has this file.
  bool Names(const std::string& file) const { return uses_.contains(file); }

  /// Appends what changed since the last call.
  void Collect(std::vector<Mutation>* mutations);

 private:
  std::map<EpochIndex, std::vector<Manifest>> epochs_;
  /// File -> how many kept snapshots have it.
  std::map<std::string, uint32_t> uses_;
  std::vector<Mutation> pending_;
};

}  // namespace muster
