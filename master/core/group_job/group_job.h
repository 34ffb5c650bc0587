#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "master/core/group_job/group_shards.h"
#include "master/core/group_job/group_stores.h"
#include "master/group_core/group_core.h"

namespace muster {

/// The synchronous group of a job that has one (CoreOptions::group), among the other parts. In
/// other jobs, every call does nothing.
///
/// Owns the GroupCore, whose view of the ledger is GroupShards. Pure; not thread-safe.
class GroupJob {
 public:
  /// kDataLoss if the journal's steps are not its DONE shards.
  static absl::Status CheckFits(const CoreOptions& options, const DurableState& state);
  /// All of them outlive it.
  GroupJob(const Books* books, GroupShards* shards, JobLife* life, GroupRecords records,
           TimePoint now);

  bool on() const { return core_.has_value(); }
  /// Requires on(), as the next one and Exchange.
  const GroupCore& core() const { return *core_; }
  const GroupStores& stores() const { return stores_; }
  /// As GroupCore::Exchange.
  absl::Status Exchange(const GroupExchangeRequest& request, StepTime at);

  /// A new run begins: every process of the journal is dead.
  void BeginRun(StepTime at);
  /// The process has ended. `token`: of the shard in which it crashed by its own fault; none: by no
  /// fault of its own, or in no shard.
  void Exited(const WorkerKey& process, LeaseToken token, std::string_view why, StepTime at);
  void Drain(const std::string& worker, bool drains, StepTime at);
  bool IsMember(const std::string& worker) const { return on() && core_->IsMember(worker); }
  void Tick(StepTime at);
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);

  /// True if every step after the checkpoint has its DONE shard.
  bool FitsLedger() const;
  void Collect(std::vector<Mutation>* mutations);
  std::vector<std::string> TakeUnusedFiles();

 private:
  const Books* const books_;
  GroupShards* const shards_;
  const JobLife* const life_;
  GroupStores stores_;
  /// Of the last attempt in the journal.
  std::vector<GroupProcess> journaled_;
  std::optional<GroupCore> core_;
};

}  // namespace muster
