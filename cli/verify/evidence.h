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

/// What a judgement says about a group.
struct GroupJudgement {
  GroupVerdict verdict;
  uint32_t workers = 0;
  GroupChanges changes;
};

/// The judgement on what a finished job has left.
struct Judgement {
  Verdict verdict;
  RecoveryTimes worker, server, master, scaler;
  uint64_t ledger_redelivered_minibatches = 0;
  uint64_t redelivered_tolerance = 0;   // minibatches
  RarePaths paths;                      // not for a group
  std::optional<GroupJudgement> group;  // only with `--group`
  bool ok() const;
};

/// Reads histories, ledger and weights of a job that succeeded, and compares them. It writes the
/// export into the job's folder. Errors say what could not be read.
absl::StatusOr<Judgement> Judge(const VerifyJob& job, const StormResult& storm, uint32_t workers);

/// The ledger in `summary.json`, and the rare paths that were taken. InvalidArgument if the text is
/// something else. Pure.
struct LedgerSummary {
  Ledger ledger;
  RarePaths paths;
  uint32_t master_restarts = 0;
  uint32_t other_restarts = 0;
};
absl::StatusOr<LedgerSummary> ParseSummary(const std::string& text);

/// The same for a job that succeeded. Errors name the file.
absl::StatusOr<LedgerSummary> ReadLedger(const VerifyJob& job);

/// How many minibatches the ledger's count of re-deliveries may be wrong by. Pure.
uint64_t RedeliveredTolerance(const LedgerSummary& summary, uint32_t pauses, uint32_t workers);

/// If more minibatches than this were re-delivered, the ledger must have counted some. Pure.
uint64_t RedeliveredUnseenMax(uint32_t pauses);

}  // namespace muster::verify
