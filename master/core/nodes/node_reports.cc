#include "master/core/nodes/node_reports.h"

#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <string>

namespace muster {
namespace {

/// True if the trainer itself caused the exit (docs/architecture.md: a preemption is not its
/// failure).
bool IsOwnFault(const NodeReport& report, JobDirective directive, std::string* text) {
  uint32_t signal = report.signal;
  // The exit code of a shell for its child's signal.
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

void NodeReports::Take(const NodeReport& report, StepTime at) {
  Node* const node = books_->nodes.FindOrAdd(report.node, report.role, leasing_->table());
  if (node == nullptr) return;
  books_->nodes.Touch(*node);
  if (report.what == NodeReport::What::kStarted) {
    Started(report, node, at);
  } else {
    Exited(report, node, at);
  }
}

void NodeReports::Started(const NodeReport& report, Node* node, StepTime at) {
  NodeRecord& record = node->record;
  if (report.start <= record.told_start) return;
  record.told_start = report.start;
  record.pid = report.pid;
  if (books_->nodes.Learn(node, NodeNews::kToldStarted) == NodeState::kExited) node->drain = {};
  books_->Say(at, "node-started", report.node,
              fmt::format("pid {}, restarts {}{}{}", report.pid, RestartsOf(record),
                          report.text.empty() ? "" : ": ", report.text));
}

void NodeReports::Exited(const NodeReport& report, Node* node, StepTime at) {
  NodeRecord& record = node->record;
  // A report about a replaced process says nothing about the new one.
  const bool current = !IsReplaced(record, report.start);
  const bool known = record.state == NodeState::kExited && record.told_start == report.start;
  if (current && known) return;
  if (current) {
    record.told_start = report.start;
    record.pid = report.pid;
    books_->nodes.Learn(node, NodeNews::kToldExited);
  }
  record.last_exit = ExitText(report);
  books_->Say(at, "node-exited", report.node,
              fmt::format("pid {}: {}{}{}", report.pid, record.last_exit,
                          report.text.empty() ? "" : ": ", report.text));
  if (record.Is(NodeRole::kWorker)) WorkerExited(report, record, at);
  if (current) drains_->Exited(node, at);
  life_->CheckEnd(at);
}

void NodeReports::WorkerExited(const NodeReport& report, const NodeRecord& record, StepTime at) {
  leasing_->grace().Settle(report.node);
  std::string text;
  const bool own_fault = IsOwnFault(report, drains_->DirectiveOf(report.node), &text);
  const auto cause =
      own_fault ? Leasing::EndCause::kTrainerFailure : Leasing::EndCause::kNodeFailure;
  const std::optional<Failures::Run> computing =
      leasing_->RunOf(report.computing_token, report.node, report.minibatches_started);
  // Leases end at once; a process that has replaced this one keeps its own.
  if (!computing.has_value()) {
    for (const WorkerKey& dead : sessions_->ProcessesOf(report, record)) {
      leasing_->EndOf(dead, cause);
    }
    return;
  }
  leasing_->EndOf(computing->worker, cause);
  if (own_fault && !life_->over() &&
      books_->ledger.queue().StateOf(computing->shard) == ShardState::kTodo) {
    failures_->Charge(report.computing_token, *computing, text, at);
  }
  failures_->Forget(report.computing_token);
}

}  // namespace muster
