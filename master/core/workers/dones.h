#pragma once

#include <cstdint>

#include "master/core/books.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// The master's verdict on shards that workers report as done (docs/protocol.md, section 2, rule 3;
/// for evaluate shards, section 7).
///
/// Owns the number of rejected records shown so far. Pure; not thread-safe.
class Dones {
 public:
  /// All of them outlive it.
  Dones(const Books* books, Ledger* ledger, JobTotals* totals, Leasing* leasing)
      : books_(books), ledger_(ledger), totals_(totals), leasing_(leasing) {}

  /// Requires that `leasing` knows the worker. A repeat gets the verdict of the first time.
  DoneVerdict Take(const DoneReport& done, const WorkerKey& worker, StepTime at);

  /// An event for each of the first rejected records of this start: file, line, why.
  void TellRejects(const ShardMetrics& metrics, const std::string& worker, StepTime at);

 private:
  /// True if parts that were confirmed under `restore_epoch` may have been undone since.
  bool IsDoubtful(RestoreEpoch restore_epoch) const;

  const Books* const books_;
  Ledger* const ledger_;
  JobTotals* const totals_;
  Leasing* const leasing_;
  uint32_t rejects_told_ = 0;
};

}  // namespace muster
