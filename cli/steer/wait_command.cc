#include "cli/steer/wait_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "admin/admin_client.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/ask/list_command.h"
#include "cli/state/job_source.h"
#include "cli/state/stored_job.h"
#include "cli/steer/patience.h"
#include "proto/fields/json.h"
#include "proto/messages/node_state.h"

namespace muster::steer {
namespace {

/// NotFound if no job runs there and none ever ran.
absl::StatusOr<JobLook> Look(const QueryOptions& options) {
  JobLook look;
  absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(options);
  look.runs = client.ok();
  if (absl::IsNotFound(client.status())) client = OpenStoredJob(options.target);
  if (!client.ok()) return client.status();
  absl::StatusOr<JobStatus> status = (*client)->GetStatus();
  if (status.ok()) {
    look.status = *std::move(status);
  } else if (!IsUnreachable(status.status())) {
    return status.status();
  }
  return look;
}

bool IsThere(const Awaited& awaited, const JobStatus& status) {
  const auto node = std::ranges::find(status.nodes, awaited.node, &NodeStatus::name);
  if (node == status.nodes.end()) return false;
  return awaited.drain ? node->drain == *awaited.drain : node->state == awaited.state;
}

std::string_view StateWord(const JobLook& look) {
  if (look.status) return ToString(look.status->state);
  return look.runs ? "silent" : "not running";
}

int Print(const WaitOptions& options, const Awaited& awaited, const JobLook& look) {
  const uint64_t committed = look.status ? look.status->progress.records_committed : 0;
  if (options.query.output == OutputFormat::kJson) {
    PrintData(JsonText({{"reached", options.awaited},
                        {"state", StateWord(look)},
                        {"records_committed", committed}}) +
              "\n");
  } else {
    PrintData(fmt::format("{} reached; state: {}, {} committed\n", options.awaited, StateWord(look),
                          CountText(committed, "record")));
  }
  const bool ended = awaited.kind == Awaited::Kind::kEnd && look.status.has_value();
  return ended ? ExitCodeOf(look.status->state) : kExitSucceeded;
}

}  // namespace

absl::StatusOr<Awaited> ParseAwaited(std::string_view text) {
  if (text == "end") return Awaited{.kind = Awaited::Kind::kEnd};
  if (text == "running") return Awaited{.kind = Awaited::Kind::kRunning};
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals > 0) {
    Awaited awaited{.kind = Awaited::Kind::kNode, .node = std::string(text.substr(0, equals))};
    const std::string_view word = text.substr(equals + 1);
    if (word == ToString(DrainState::kDrained)) {
      awaited.drain = DrainState::kDrained;
      return awaited;
    }
    if (FromWord(word, &awaited.state)) return awaited;
  }
  return absl::InvalidArgumentError(fmt::format(
      "'{}' cannot be waited for: use end, running, or NODE=STATE, for example worker-1=running; "
      "states are {}, {}",
      text, fmt::join(WordsOf(NodeState::kPlanned), ", "), ToString(DrainState::kDrained)));
}

bool IsReached(const Awaited& awaited, const JobLook& look) {
  switch (awaited.kind) {
    case Awaited::Kind::kEnd:
      return !look.runs;
    case Awaited::Kind::kRunning:
      return look.status && RunningNodes(*look.status, NodeRole::kWorker) > 0;
    case Awaited::Kind::kNode:
      return look.status && IsThere(awaited, *look.status);
  }
  return false;
}

std::string OutOfReach(const Awaited& awaited, const JobLook& look, bool ran) {
  if (!ran || look.runs || awaited.kind == Awaited::Kind::kEnd) return "";
  const std::string job = fmt::format("the job has ended ({})", StateWord(look));
  if (awaited.kind != Awaited::Kind::kNode || !look.status) return job;
  const auto node = std::ranges::find(look.status->nodes, awaited.node, &NodeStatus::name);
  if (node == look.status->nodes.end()) return fmt::format("{} without a {}", job, awaited.node);
  const std::string drain =
      node->drain == DrainState::kNone ? "" : fmt::format(" and {}", ToString(node->drain));
  return fmt::format("{}; {} is {}{}", job, awaited.node, ToString(node->state), drain);
}

int ExitCodeOf(JobState state) {
  switch (state) {
    case JobState::kSucceeded:
      return kExitSucceeded;
    case JobState::kDrained:
    case JobState::kStopped:
      return kExitDrained;
    case JobState::kCancelled:
      return kExitCancelled;
    default:
      return kExitFailed;
  }
}

int WaitCommand(const WaitOptions& options) {
  const absl::StatusOr<Awaited> awaited = ParseAwaited(options.awaited);
  if (!awaited.ok()) return PrintError(awaited.status());
  const SystemClock clock;
  std::optional<std::chrono::seconds> limit;
  if (awaited->kind != Awaited::Kind::kEnd) limit = kReachTimeout;
  if (options.timeout_s) limit = std::chrono::seconds(*options.timeout_s);
  Patience patience = Patience::OfAPerson(limit, &clock);
  bool ran = false;
  while (true) {
    absl::StatusOr<JobLook> look = Look(options.query);
    // The run may be about to begin.
    const bool absent = absl::IsNotFound(look.status());
    if (absent && awaited->kind != Awaited::Kind::kEnd) look = JobLook();
    if (!look.ok()) return PrintError(look.status());
    if (IsReached(*awaited, *look)) return Print(options, *awaited, *look);
    const std::string vain = OutOfReach(*awaited, *look, ran);
    if (!vain.empty()) {
      return PrintError(fmt::format("{} was not reached: {}", options.awaited, vain), kExitFailed);
    }
    ran = ran || look->runs;
    const std::string state = fmt::format("state: {}", StateWord(*look));
    if (!patience.Wait(fmt::format("{} ({})", options.awaited, state))) {
      return PrintError(
          fmt::format("{} was not reached within {} s; {}", options.awaited, limit->count(), state),
          kExitFailed);
    }
  }
}

}  // namespace muster::steer
