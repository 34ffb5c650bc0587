// What operators and the supervisor tell MasterCore; tables.
#include <fmt/format.h>

#include <cmath>
#include <csignal>

#include "base/check.h"
#include "base/status.h"
#include "master/core/master_core.h"

namespace muster {
namespace {

/// Whether the exit is the trainer's own doing (docs/architecture.md: a preemption is not).
bool IsOwnFault(const NodeReport& report, JobDirective directive, std::string* text) {
  uint32_t signal = report.signal;
  // What a shell makes of its child's signal.
  if (signal == 0 && report.exit_code > 128) signal = report.exit_code - 128;
  switch (signal) {
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
      *text = fmt::format("crashed with signal {}", signal);
      return true;
    case SIGKILL:
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
      return false;
    default:
      break;
  }
  if (report.signal != 0) return false;
  if (report.exit_code != 0) {
    *text = fmt::format("exited with code {}", report.exit_code);
    return true;
  }
  *text = "exited with code 0 before the job's end";
  return directive == JobDirective::kWork;
}

std::string ExitText(const NodeReport& report) {
  if (report.signal == 0) return fmt::format("exit {}", report.exit_code);
  const char* name = ::sigabbrev_np(static_cast<int>(report.signal));
  return name == nullptr ? fmt::format("signal {}", report.signal) : fmt::format("SIG{}", name);
}

}  // namespace

absl::StatusOr<TableId> MasterCore::RegisterTable(const TableSpec& table, StepTime at) {
  now_ = at.now;
  MUSTER_ASSIGN_OR_RETURN(const TableRegistry::Registered registered, tables_.Register(table));
  if (registered.added) {
    books_.Say(at, "table-registered", "", ToString(tables_.tables().at(registered.id)));
  }
  return registered.id;
}

void MasterCore::ReportNode(const NodeReport& report, StepTime at) {
  now_ = at.now;
  Node* node = books_.nodes.FindOrAdd(report.node, report.role, leasing_.table());
  if (node == nullptr) return;
  NodeRecord& record = node->record;
  books_.nodes.Touch(*node);
  if (report.what == NodeReport::What::kStarted) {
    if (report.start <= record.told_start) return;
    record.told_start = report.start;
    record.pid = report.pid;
    if (record.state == "exited") node->drain = {};
    // These do not register: that they are there is all that there is to know.
    const bool silent = record.role == kRoleMaster || record.role == kRoleScaler;
    if (record.state != "running" || silent) record.state = silent ? "running" : "starting";
    books_.Say(at, "node-started", report.node,
               fmt::format("pid {}, restarts {}{}{}", report.pid, RestartsOf(record),
                           report.text.empty() ? "" : ": ", report.text));
    return;
  }
  // A report of a process that has been replaced already says nothing about the new one.
  const bool current = !IsReplaced(record, report.start);
  if (current && record.state == "exited" && record.told_start == report.start) return;
  if (current) {
    record.told_start = report.start;
    record.pid = report.pid;
    record.state = "exited";
  }
  record.last_exit = ExitText(report);
  books_.Say(at, "node-exited", report.node,
             fmt::format("pid {}: {}{}{}", report.pid, record.last_exit,
                         report.text.empty() ? "" : ": ", report.text));
  if (record.role == kRoleWorker) WorkerExited(report, record, at);
  if (current) drains_.Exited(node, at);
  life_.CheckEnd(at);
}

void MasterCore::WorkerExited(const NodeReport& report, const NodeRecord& record, StepTime at) {
  leasing_.grace().Settle(report.node);
  std::string text;
  const bool own_fault = IsOwnFault(report, drains_.DirectiveOf(report.node), &text);
  const auto cause =
      own_fault ? Leasing::EndCause::kTrainerFailure : Leasing::EndCause::kNodeFailure;
  const std::optional<Failures::Run> computing =
      leasing_.RunOf(report.computing_token, report.node, report.minibatches_started);
  // Leases end at once; a process that has replaced this one keeps its own.
  if (!computing.has_value()) {
    for (const auto& [key, session] : sessions_) {
      if (IsOf(report, record, key, session)) leasing_.EndOf(key, cause);
    }
    return;
  }
  leasing_.EndOf(computing->worker, cause);
  if (own_fault && !life_.over() &&
      books_.ledger.queue().StateOf(computing->shard) == ShardState::kTodo) {
    failures_.Charge(report.computing_token, *computing, text, at);
  }
  failures_.Forget(report.computing_token);
}

bool MasterCore::IsOf(const NodeReport& report, const NodeRecord& record, const WorkerKey& worker,
                      const Session& session) {
  if (worker.name != report.node) return false;
  if (report.incarnation != 0) return worker.incarnation == report.incarnation;
  // It left nothing behind.
  if (session.start != StartNumber()) return session.start <= report.start;
  return record.told_start == report.start;
}

absl::StatusOr<uint64_t> MasterCore::RetryShards(const std::vector<ShardId>& shards, StepTime at) {
  now_ = at.now;
  if (life_.over()) {
    return absl::FailedPreconditionError(
        fmt::format("the job has ended ({}): `muster run --retry-failed` runs its FAILED shards "
                    "again",
                    ToString(life_.state())));
  }
  MUSTER_ASSIGN_OR_RETURN(const uint64_t retried, failures_.Retry(shards, at));
  if (retried > 0) life_.CheckLimits(at);
  return retried;
}

}  // namespace muster
