#include "cli/steer/cancel_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "admin/admin_client.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/state/job_source.h"
#include "cli/steer/patience.h"
#include "cli/steer/scaler_call.h"
#include "proto/fields/json.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"
#include "scaler/model/model_json.h"

namespace muster::steer {
namespace {

using scaler::rest::Event;

/// The records that a cancel would lose. A job that is over cannot lose any.
uint64_t Uncommitted(const JobStatus& status) {
  const Progress& progress = status.progress;
  if (IsTerminal(status.state)) return 0;
  return progress.records_done - std::min(progress.records_done, progress.records_committed);
}

std::string RecordsText(uint64_t count) {
  return CountText(count, "trained record is", "trained records are");
}

BeforeCancel AskPerson(uint64_t uncommitted) {
  while (true) {
    fmt::print(stderr,
               "muster: {} not committed yet. Take a snapshot first, so that nothing is lost? "
               "[Y]es, [n]o, [q]uit: ",
               RecordsText(uncommitted));
    std::fflush(stderr);
    std::string line;
    if (!std::getline(std::cin, line)) return BeforeCancel::kQuit;
    if (const std::optional<BeforeCancel> answer = ParseAnswer(line)) return *answer;
  }
}

/// An error if the job has ended, so that no snapshot can be taken any more. OK if only its master
/// is away.
absl::Status WhyOver(const QueryOptions& query, const absl::Status& answer) {
  if (!IsUnreachable(answer)) return answer;
  const absl::Status master = ConnectToMaster(query).status();
  return absl::IsNotFound(master) ? master : absl::OkStatus();
}

/// Lets all servers take snapshots, which commits what is trained now. Workers and servers
/// continue. DeadlineExceeded if this takes too long; the servers are as before then.
absl::Status TakeSnapshots(const CancelOptions& options, AdminClient* master,
                           const JobStatus& status) {
  const SystemClock clock;
  Patience patience = Patience::OfAPerson(std::chrono::seconds(options.timeout_s), &clock);
  std::vector<std::string> behind;
  for (const NodeStatus& node : status.nodes) {
    if (node.role == ToString(NodeRole::kServer)) behind.push_back(node.name);
  }
  const std::vector<std::string> servers = behind;
  absl::Status over;  // why waiting is useless now
  while (true) {
    std::erase_if(behind, [&](const std::string& server) {
      v1::DrainNodeRequest request;
      request.set_node(server);
      request.set_timeout_ms(uint64_t{options.timeout_s} * 2'000);
      const absl::StatusOr<v1::DrainNodeResponse> response = master->DrainNode(request);
      if (!response.ok()) over = WhyOver(options.query, response.status());
      return response.ok() && response->drain() == ToString(DrainState::kDrained);
    });
    MUSTER_RETURN_IF_ERROR(over);
    if (behind.empty()) return absl::OkStatus();
    if (!patience.Wait(fmt::format("the snapshots of {}", fmt::join(behind, ", ")))) break;
  }
  for (const std::string& server : servers) {
    v1::ResumeNodeRequest request;
    request.set_node(server);
    (void)master->ResumeNode(request);
  }
  return absl::DeadlineExceededError(
      fmt::format("the snapshots of {} were not complete within {} s, so the job was not cancelled "
                  "and continues. Give them more time (--timeout), or cancel without them "
                  "(--no-snapshot)",
                  fmt::join(behind, ", "), options.timeout_s));
}

/// Says what would be lost, and commits it if the user wants that. Aborted if the person does not
/// want to cancel.
absl::Status Prepare(const CancelOptions& options) {
  const absl::StatusOr<std::unique_ptr<AdminClient>> master = ConnectToMaster(options.query);
  const absl::StatusOr<JobStatus> status =
      master.ok() ? (*master)->GetStatus() : absl::StatusOr<JobStatus>(master.status());
  // The cancel itself does not need the status.
  if (!status.ok()) return options.snapshot.value_or(false) ? status.status() : absl::OkStatus();
  const uint64_t uncommitted = Uncommitted(*status);
  const bool person = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  BeforeCancel first = WhatFirst(options.snapshot, uncommitted, person);
  if (first == BeforeCancel::kAsk) first = AskPerson(uncommitted);
  if (first == BeforeCancel::kQuit) return absl::AbortedError("the job was not cancelled");
  if (first == BeforeCancel::kNothing) {
    if (uncommitted == 0) return absl::OkStatus();
    PrintNote(
        fmt::format("{} not committed and lost by the cancel; `muster cancel --snapshot` "
                    "commits first",
                    RecordsText(uncommitted)));
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(TakeSnapshots(options, master->get(), *status));
  const absl::StatusOr<JobStatus> now = (*master)->GetStatus();
  if (now.ok()) {
    PrintNote(fmt::format("{} committed",
                          CountText(now->progress.records_committed, "record is", "records are")));
  }
  return absl::OkStatus();
}

}  // namespace

BeforeCancel WhatFirst(std::optional<bool> snapshot, uint64_t uncommitted, bool person) {
  if (uncommitted == 0) return BeforeCancel::kNothing;
  if (snapshot.has_value()) return *snapshot ? BeforeCancel::kSnapshot : BeforeCancel::kNothing;
  return person ? BeforeCancel::kAsk : BeforeCancel::kNothing;
}

std::optional<BeforeCancel> ParseAnswer(std::string_view line) {
  if (line.empty() || line == "y" || line == "Y" || line == "yes") return BeforeCancel::kSnapshot;
  if (line == "n" || line == "N" || line == "no") return BeforeCancel::kNothing;
  if (line == "q" || line == "Q" || line == "quit") return BeforeCancel::kQuit;
  return std::nullopt;
}

int CancelCommand(const CancelOptions& options) {
  const std::string reason =
      options.reason.empty() ? "cancelled by `muster cancel`" : options.reason;
  if (const absl::Status prepared = Prepare(options); !prepared.ok()) {
    // In these cases, the job goes on, so the exit code must not say that there is no job.
    const bool goes_on = absl::IsAborted(prepared) || absl::IsDeadlineExceeded(prepared);
    return goes_on ? PrintError(Message(prepared), kExitFailed) : PrintError(prepared);
  }
  const absl::StatusOr<std::optional<Event>> event =
      TryOrder(options.query, {scaler::CancelJob{}, reason});
  if (!event.ok()) return PrintRefusal(event.status());
  if (!event->has_value()) {
    absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(options.query);
    if (!client.ok()) return PrintError(client.status());
    v1::CancelRequest request;
    request.set_reason(reason);
    const absl::Status status = (*client)->Cancel(request);
    if (!status.ok()) return PrintError(status);
  }
  if (options.query.output == OutputFormat::kJson) {
    nlohmann::json json = {{"cancel", "asked"}};
    if (event->has_value()) json["event"] = (*event)->id;
    PrintData(JsonText(json, 2) + "\n");
  } else {
    PrintData(fmt::format("cancelled; what is committed stays{}\n",
                          event->has_value() ? fmt::format(" (event #{})", (*event)->id) : ""));
  }
  return kExitSucceeded;
}

}  // namespace muster::steer
