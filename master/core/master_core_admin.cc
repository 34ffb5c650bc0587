// What operators and the supervisor tell MasterCore; tables.
#include <fmt/format.h>

#include <cmath>
#include <csignal>

#include "base/check.h"
#include "base/status.h"
#include "master/core/master_core.h"

namespace muster {
namespace {

constexpr size_t kTablesMax = 1'024;
constexpr uint32_t kDimMax = 65'536;
constexpr size_t kTableNameBytesMax = 128;
constexpr size_t kShapeMax = 8;
constexpr uint64_t kElementsMax = uint64_t{1} << 40;

absl::Status CheckTable(const TableSpec& table) {
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("table {}: {}", ToString(table), what));
  };
  if (table.name.empty() || table.name.size() > kTableNameBytesMax) {
    return bad(fmt::format("a name has 1 to {} bytes", kTableNameBytesMax));
  }
  if (table.dim == 0 || table.dim > kDimMax) {
    return bad(fmt::format("dim must be in [1, {}]", kDimMax));
  }
  if (table.shape.size() > kShapeMax) {
    return bad(fmt::format("a tensor has at most {} axes", kShapeMax));
  }
  uint64_t elements = 1;
  for (uint64_t axis : table.shape) {
    if (axis == 0 || axis > kElementsMax / elements) {
      return bad(fmt::format("every axis must be > 0, and all elements together at most {}",
                             kElementsMax));
    }
    elements *= axis;
  }
  if (!std::isfinite(table.initializer.a) || !std::isfinite(table.initializer.b) ||
      !std::isfinite(table.schedule.decay) || !std::isfinite(table.schedule.final_factor)) {
    return bad("initializer and schedule must be finite");
  }
  return absl::OkStatus();
}

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
  MUSTER_RETURN_IF_ERROR(CheckTable(table));
  for (const auto& [id, known] : tables_) {
    if (known.name != table.name) continue;
    TableSpec same = table;
    same.id = id;
    if (!table.warm_start_directory.empty() && table.warm_start_hash.empty()) {
      same.warm_start_hash = known.warm_start_hash;
    }
    if (same == known) return id;
    return absl::AlreadyExistsError(fmt::format(
        "table '{}' is registered with another specification. Registered: {}. Asked for: {}. All "
        "workers of a job must name the same table alike; take another name for another table",
        table.name, ToString(known), ToString(same)));
  }
  if (!table.warm_start_directory.empty() && table.warm_start_hash.empty()) {
    return absl::NotFoundError(
        fmt::format("table '{}' is not registered yet: give the hash of the export {}", table.name,
                    table.warm_start_directory));
  }
  if (tables_.size() >= kTablesMax) {
    return absl::ResourceExhaustedError(
        fmt::format("table '{}': a job has at most {} tables", table.name, kTablesMax));
  }
  const TableId id(tables_.empty() ? 1 : tables_.rbegin()->first.value() + 1);
  TableSpec added = table;
  added.id = id;
  tables_[id] = added;
  dirty_tables_.push_back(id);
  AddEvent(at, "table-registered", "", ToString(added));
  return id;
}

void MasterCore::ReportNode(const NodeReport& report, StepTime at) {
  now_ = at.now;
  Node* node = nodes_.FindOrAdd(report.node, report.role, leases_);
  if (node == nullptr) return;
  NodeRecord& record = node->record;
  nodes_.Touch(*node);
  if (report.what == NodeReport::What::kStarted) {
    if (report.start <= record.told_start) return;
    record.told_start = report.start;
    record.pid = report.pid;
    if (record.state == "exited") node->drain = {};
    // These do not register: that they are there is all that there is to know.
    const bool silent = record.role == kRoleMaster || record.role == kRoleScaler;
    if (record.state != "running" || silent) record.state = silent ? "running" : "starting";
    AddEvent(at, "node-started", report.node,
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
  AddEvent(at, "node-exited", report.node,
           fmt::format("pid {}: {}{}{}", report.pid, record.last_exit,
                       report.text.empty() ? "" : ": ", report.text));
  if (record.role == kRoleWorker) WorkerExited(report, record, at);
  if (current && node->drain.state == NodeDrain::State::kDraining) {
    if (record.role == kRoleWorker) {
      node->drain.left = 0;
      EndDrain(node, at);
    } else {
      node->drain = {};
    }
  }
  CheckEnd(at);
}

void MasterCore::WorkerExited(const NodeReport& report, const NodeRecord& record, StepTime at) {
  awaited_.erase(report.node);
  std::string text;
  const bool own_fault = IsOwnFault(report, DirectiveOf(report.node), &text);
  std::optional<Ended> computing;
  if (Lease* lease = leases_.Find(report.computing_token)) {
    if (lease->worker.name == report.node) {
      lease->minibatches_started = report.minibatches_started;
      computing = Ended{lease->shard, lease->worker};
    }
  } else if (auto it = ended_.find(report.computing_token); it != ended_.end()) {
    computing = it->second;
  }
  // Leases end at once; a process that has replaced this one keeps its own.
  for (const auto& [key, session] : sessions_) {
    const bool dead =
        computing.has_value() ? key == computing->worker : IsOf(report, record, key, session);
    if (dead) EndLeasesOf(key, own_fault ? EndCause::kTrainerFailure : EndCause::kNodeFailure);
  }
  if (own_fault && computing.has_value() && !IsTerminal(state_) &&
      ledger_.queue().StateOf(computing->shard) == ShardState::kTodo) {
    Charge(report.computing_token, *computing, text, at);
  }
  if (computing.has_value()) ended_.erase(report.computing_token);
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
  if (IsTerminal(state_)) {
    return absl::FailedPreconditionError(
        fmt::format("the job has ended ({}): `muster run --retry-failed` runs its FAILED shards "
                    "again",
                    ToString(state_)));
  }
  for (const ShardId& shard : shards) {
    if (!ledger_.queue().Valid(shard)) {
      return absl::FailedPreconditionError(fmt::format(
          "shard {}: the job has no such shard (dataset/epoch/index)", ToString(shard)));
    }
    if (ledger_.queue().StateOf(shard) != ShardState::kFailed) {
      return absl::FailedPreconditionError(
          fmt::format("shard {} is not FAILED but {}, so there is nothing to try again; `muster "
                      "shards --state failed` lists those that are. No shard was changed",
                      ToString(shard), ToString(ledger_.queue().StateOf(shard))));
    }
  }
  uint64_t retried = 0;
  for (const ShardId& shard : shards.empty() ? ledger_.queue().FailedShards() : shards) {
    // Named twice: FAILED no more.
    if (ledger_.queue().StateOf(shard) != ShardState::kFailed) continue;
    ledger_.Retry(shard);
    ++retried;
  }
  if (retried > 0) {
    AddEvent(at, "shards-retried", "", fmt::format("{} shard{}", retried, retried == 1 ? "" : "s"));
    CheckLimits(at);
  }
  return retried;
}

void MasterCore::Drain(StepTime at) {
  now_ = at.now;
  if (state_ != JobState::kRunning) return;
  state_ = JobState::kDraining;
  drain_began_ = at.now;
  MetaChanged();
  AddEvent(at, "drain-began", "", fmt::format("{} leases outstanding", leases_.size()));
  CheckEnd(at);
}

absl::Status MasterCore::Cancel(const CancelOptions& options, StepTime at) {
  now_ = at.now;
  if (!IsTerminal(state_)) {
    EndJob(options.as_failed ? JobState::kFailed : JobState::kCancelled, options.reason, at);
    return absl::OkStatus();
  }
  if (options.as_failed || state_ == JobState::kCancelled) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the job has ended ({}{}{}): there is nothing left to cancel", ToString(state_),
                  reason_.empty() ? "" : ": ", reason_));
}

}  // namespace muster
