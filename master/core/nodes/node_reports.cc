#include "master/core/nodes/node_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

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

MasterEventKind KindOfExit(Disruption disruption) {
  switch (disruption) {
    case Disruption::kEvicted:
      return "node-evicted";
    case Disruption::kPreempted:
      return "node-preempted";
    case Disruption::kDrained:
      return "node-machine-drained";
    case Disruption::kNodeLost:
      return "node-machine-lost";
    case Disruption::kDeleted:
      return "node-deleted";
    case Disruption::kNone:
      break;
  }
  return kNodeExited;
}

MasterEventKind KindOfWait(NodeWait wait) {
  switch (wait) {
    case NodeWait::kUnschedulable:
      return "node-unschedulable";
    case NodeWait::kImage:
      return "node-image-error";
    case NodeWait::kQuota:
      return "node-quota";
    case NodeWait::kForbidden:
      return "node-forbidden";
    case NodeWait::kConfig:
      return "node-config-error";
    case NodeWait::kUnreachable:
      return "cluster-away";
    case NodeWait::kNone:
      break;
  }
  return "node-placed";
}

std::string ExitText(const NodeReport& report) {
  if (report.signal == 0) return fmt::format("exit {}", report.exit_code);
  const char* name = ::sigabbrev_np(static_cast<int>(report.signal));
  return name == nullptr ? fmt::format("signal {}", report.signal) : fmt::format("SIG{}", name);
}

}  // namespace

void NodeReports::Take(const NodeReport& report, StepTime at) {
  Node* const node = nodes_->FindOrAdd(report.node, report.role, leasing_->table());
  if (node == nullptr) return;
  nodes_->Touch(*node);
  const bool was_away = IsClusterAway();
  switch (report.what) {
    case NodeReport::What::kStarted:
      Started(report, node, at);
      break;
    case NodeReport::What::kExited:
      Exited(report, node, at);
      break;
    case NodeReport::What::kHeld:
      Held(report, node, at);
      break;
    case NodeReport::What::kResized:
      Resized(report, *node, at);
      break;
  }
  const bool is_away = IsClusterAway();
  if (is_away && !was_away) {
    books_->Say(at, KindOfWait(NodeWait::kUnreachable), "",
                WaitText(NodeWait::kUnreachable, report.text) + ". " +
                    std::string(WaitAdvice(NodeWait::kUnreachable)));
  }
  if (was_away && !is_away) books_->Say(at, "cluster-back", "", "the cluster answers again");
}

bool NodeReports::IsClusterAway() const {
  return std::ranges::any_of(books_->nodes.nodes(), [](const auto& entry) {
    const NodeHold* const hold = HoldOf(entry.second);
    return hold != nullptr && hold->wait == NodeWait::kUnreachable;
  });
}

void NodeReports::Held(const NodeReport& report, Node* node, StepTime at) {
  if (report.start <= node->record.told_start || report.start <= node->record.start) return;
  const bool same_start = node->hold.start == report.start;
  const NodeWait former = same_start ? node->hold.wait : NodeWait::kNone;
  node->hold = {.start = report.start, .wait = report.wait, .reason = report.text};
  // That the cluster is away, or back, is said once for all nodes.
  const bool on_its_way = report.wait == NodeWait::kNone;
  if (report.wait == former || report.wait == NodeWait::kUnreachable) return;
  if (on_its_way && former == NodeWait::kUnreachable) return;
  const std::string text =
      on_its_way ? "it is on its way"
                 : WaitText(report.wait, report.text) + ". " + std::string(WaitAdvice(report.wait));
  books_->Say(at, KindOfWait(report.wait), report.node, text);
}

void NodeReports::Resized(const NodeReport& report, const Node& node, StepTime at) {
  if (IsReplaced(node.record, report.start)) return;
  const std::string words = report.text.empty() ? "" : ": " + report.text;
  switch (report.resize_answer) {
    case ResizeAnswer::kDone:
      return books_->Say(at, "node-resized", report.node, "in place" + words);
    case ResizeAnswer::kDeferred:
      return books_->Say(at, "node-resize-deferred", report.node,
                         "its machine has no room for that now; it gets it when there is" + words);
    case ResizeAnswer::kRefused:
      break;
  }
  books_->Say(at, "node-resize-refused", report.node, "it cannot have that where it runs" + words);
}

void NodeReports::Started(const NodeReport& report, Node* node, StepTime at) {
  NodeRecord& record = node->record;
  if (report.start <= record.told_start) return;
  record.told_start = report.start;
  node->told_at = at.now;
  record.pid = report.pid;
  record.host = report.host;
  if (nodes_->Learn(node, NodeNews::kToldStarted) == NodeState::kExited) node->drain = {};
  books_->Say(
      at, "node-started", report.node,
      fmt::format("pid {}{}{}, restarts {}{}{}", report.pid, report.host.empty() ? "" : " on ",
                  report.host, RestartsOf(record), report.text.empty() ? "" : ": ", report.text));
}

void NodeReports::Exited(const NodeReport& report, Node* node, StepTime at) {
  NodeRecord& record = node->record;
  // A report about a replaced process says nothing about the new one.
  const bool current = !IsReplaced(record, report.start);
  if (current) {
    record.told_start = report.start;
    record.pid = report.pid;
    nodes_->Learn(node, NodeNews::kToldExited);
  }
  // Exits of a node come in the order of its starts.
  if (report.start <= record.exit_told) return;
  record.exit_told = report.start;
  record.last_exit = ExitText(report);
  books_->Say(at, KindOfExit(report.disruption), report.node,
              fmt::format("pid {}: {}{}{}", report.pid, record.last_exit,
                          report.text.empty() ? "" : ": ", report.text));
  if (record.Is(NodeRole::kWorker)) WorkerExited(report, record, at);
  if (current) drains_->Exited(node, at);
  life_->CheckEnd(at);
}

std::string NodeReports::PlaceText(const NodeReport& report, const ShardId& shard) const {
  if (!books_->ledger.queue().Valid(shard)) return "";
  const uint32_t minibatches = books_->ledger.MinibatchesOf(shard);
  const Lease* const lease = leasing_->table().FindShard(shard);
  const bool first_run = lease == nullptr || lease->run == RunNumber();
  if (!first_run || report.minibatches_started > minibatches) return "";
  if (report.minibatches_started == 0) return ", before the first minibatch of the shard";
  // Its thread may also have prepared later ones.
  return fmt::format(", after minibatch {} of {} of the shard had begun",
                     report.minibatches_started, minibatches);
}

void NodeReports::WorkerExited(const NodeReport& report, const NodeRecord& record, StepTime at) {
  leasing_->grace().Settle(report.node);
  std::string text;
  const bool own_fault = report.disruption == Disruption::kNone &&
                         IsOwnFault(report, drains_->DirectiveOf(report.node), &text);
  if (group_->on()) {
    const LeaseToken token = own_fault ? report.computing_token : LeaseToken();
    std::vector<WorkerKey> dead = sessions_->ProcessesOf(report, record);
    // It has not called this master yet.
    if (dead.empty() && report.incarnation != 0) dead.push_back({report.node, report.incarnation});
    for (const WorkerKey& process : dead) group_->Exited(process, token, text, at);
    return;
  }
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
  text += PlaceText(report, computing->shard);
  leasing_->EndOf(computing->worker, cause);
  if (own_fault && !life_->over() &&
      books_->ledger.queue().StateOf(computing->shard) == ShardState::kTodo) {
    failures_->Charge(report.computing_token, *computing, text, at);
  }
  failures_->Forget(report.computing_token);
}

}  // namespace muster
