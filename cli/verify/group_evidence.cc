#include "cli/verify/group_evidence.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "cli/state/stored_job.h"
#include "cli/verify/histories.h"
#include "proto/status/event_kinds.h"
#include "verify/group_checker.h"
#include "verify/workload/group_state.h"

namespace muster::verify {
namespace {

constexpr uint64_t kStateBytesMax = uint64_t{1} << 32;
constexpr MasterEventKind kChanged = "group-changed";
constexpr MasterEventKind kRolledBack = "group-rolled-back";

absl::StatusOr<std::vector<FinalState>> ReadResults(const VerifyJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(job.results()));
  std::vector<FinalState> finals;
  for (const std::string& path : paths) {
    MUSTER_ASSIGN_OR_RETURN(const ProcessName process, ProcessOfFile(path));
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kStateBytesMax));
    std::optional<GroupState> state = GroupState::FromBytes(bytes, job.workload().records);
    if (!state.has_value()) {
      return absl::DataLossError(fmt::format("{}: {} bytes are no state of {} records", path,
                                             bytes.size(), job.workload().records));
    }
    finals.push_back({process, *std::move(state)});
  }
  return finals;
}

absl::StatusOr<GroupChanges> ReadChanges(const VerifyJob& job) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<AdminClient> stored,
                          OpenStoredJob({.job_file = "", .state_directory = job.state().path()}));
  GroupChanges changes;
  v1::ListEventsRequest request;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const MasterEvents page, stored->ListEvents(request));
    if (page.events.empty()) return changes;
    const GroupChanges more = ChangesIn(page);
    changes.attempts += more.attempts;
    changes.rollbacks += more.rollbacks;
    request.set_after(page.events.back().sequence);
  }
}

/// Checks the tables of a group's state, in the same way as an export of servers.
Verdict CheckTables(const VerifyJob& job, const AttemptLog& attempts, const Ledger& ledger,
                    const GroupState& state) {
  std::vector<uint64_t> ids(job.workload().records);
  for (uint64_t id = 0; id < ids.size(); ++id) ids[id] = id;
  const std::vector<uint64_t> buckets = BucketsKeys();
  const std::vector<uint64_t> wide = WideKeys();
  return Check(job.workload(), attempts, ledger,
               {.ids = {ids, state.ids()},
                .buckets = {buckets, state.buckets()},
                .wide = {wide, state.wide()},
                .totals = state.totals()});
}

}  // namespace

GroupChanges ChangesIn(const MasterEvents& events) {
  GroupChanges changes;
  for (const MasterEvent& event : events.events) {
    if (event.kind == kChanged.word()) ++changes.attempts;
    if (event.kind == kRolledBack.word()) ++changes.rollbacks;
  }
  return changes;
}

absl::StatusOr<Judgement> JudgeGroup(const VerifyJob& undisturbed, const VerifyJob& job,
                                     const StormResult& storm) {
  MUSTER_ASSIGN_OR_RETURN(Histories before, ReadHistories(undisturbed.histories(), job.workload()));
  MUSTER_ASSIGN_OR_RETURN(Histories histories, ReadHistories(job.histories(), job.workload()));
  GroupRun right{.steps = std::move(before.steps), .finals = {}};
  GroupRun run{.steps = std::move(histories.steps), .finals = {}};
  MUSTER_ASSIGN_OR_RETURN(right.finals, ReadResults(undisturbed));
  MUSTER_ASSIGN_OR_RETURN(run.finals, ReadResults(job));
  MUSTER_ASSIGN_OR_RETURN(LedgerSummary summary, ReadLedger(job));
  // A group's ledger does not count minibatches that a new attempt of a step computes again.
  summary.ledger.redelivered_tolerance = std::numeric_limits<uint64_t>::max();
  summary.ledger.redelivered_unseen_max = std::numeric_limits<uint64_t>::max();

  GroupJudgement group{.verdict = CheckGroup(job.workload(), right, run),
                       .workers = job.options().workers};
  MUSTER_ASSIGN_OR_RETURN(group.changes, ReadChanges(job));
  Judgement judgement{.worker = Summarise(run.steps.Recoveries(storm.worker_kills)),
                      .master = Summarise(storm.master_recoveries_ms)};
  // If there is no such state, the group's verdict says what is wrong.
  if (const GroupState* const state = FinalStateOf(right, run)) {
    judgement.verdict = CheckTables(job, histories.attempts, summary.ledger, *state);
  }
  judgement.group = std::move(group);
  return judgement;
}

}  // namespace muster::verify
