#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/verify/storm.h"
#include "cli/verify/verify_job.h"
#include "verify/checker.h"
#include "verify/group_checker.h"
#include "verify/recovery.h"

namespace muster::verify {

/// How often a group changed.
struct GroupChanges {
  uint64_t attempts = 0;   // lists of members that began to make steps
  uint64_t rollbacks = 0;  // returns to an older step, because nobody had the newest state any more
};

/// What there is to say of a group.
struct GroupJudgement {
  GroupVerdict verdict;
  uint32_t workers = 0;
  GroupChanges changes;
};

/// What a finished job left behind, judged.
struct Judgement {
  Verdict verdict;
  RecoveryTimes worker, server, master, scaler;
  uint64_t ledger_redelivered_minibatches = 0;
  uint64_t redelivered_tolerance = 0;   // minibatches
  RarePaths paths;                      // not of a group
  std::optional<GroupJudgement> group;  // of `--group`
  bool ok() const;
};

/// Reads histories, ledger and weights of a job that succeeded, and compares them. Writes the
/// export into the job's folder. Errors say what could not be read.
absl::StatusOr<Judgement> Judge(const VerifyJob& job, const StormResult& storm, uint32_t workers);

/// The ledger as `summary.json` has it, and the paths that were taken. InvalidArgument when the
/// text is not that. Pure.
struct LedgerSummary {
  Ledger ledger;
  RarePaths paths;
  uint32_t master_restarts = 0;
  uint32_t other_restarts = 0;
};
absl::StatusOr<LedgerSummary> ParseSummary(const std::string& text);

/// The same of a job that succeeded. Errors name the file.
absl::StatusOr<LedgerSummary> ReadLedger(const VerifyJob& job);

/// By how many minibatches the ledger's count of re-deliveries may be off. Pure.
uint64_t RedeliveredTolerance(const LedgerSummary& summary, uint32_t pauses, uint32_t workers);

/// Of more re-delivered minibatches than this, the ledger has counted one. Pure.
uint64_t RedeliveredUnseenMax(uint32_t pauses);

}  // namespace muster::verify
