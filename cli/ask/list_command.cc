#include "cli/ask/list_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "admin/admin_client.h"
#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/state/job_source.h"
#include "cli/state/running_jobs.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

/// Short, because a job that does not answer must not delay the others for long.
constexpr std::chrono::milliseconds kDeadline{1'000};

ListedJob Ask(const StateDirectory& state) {
  ListedJob job{.state_directory = state.path(), .pid = 0, .status = {}};
  const absl::StatusOr<Endpoint> endpoint = state.ReadEndpoint();
  if (!endpoint.ok()) return job;
  job.pid = endpoint->pid;
  const std::unique_ptr<AdminClient> master =
      MakeAdminClient(OperatorTarget(state, *endpoint), kDeadline, WhenAway::kFail);
  absl::StatusOr<JobStatus> status = master->GetStatus();
  if (status.ok()) job.status = *std::move(status);
  return job;
}

std::string_view StateWord(const ListedJob& job) {
  return job.status ? ToString(job.status->state) : "no answer";
}

std::vector<std::string> Row(const ListedJob& job) {
  std::vector<std::string> row = {"-", std::string(StateWord(job)), "-", "-", "-"};
  if (job.status) {
    const Progress& progress = job.status->progress;
    row[0] = Printable(job.status->name);
    row[2] = fmt::format("{} of {}", CountText(progress.records_committed),
                         CountText(progress.records_expected));
    row[3] = std::to_string(RunningNodes(*job.status, NodeRole::kWorker));
    row[4] = std::to_string(RunningNodes(*job.status, NodeRole::kServer));
  }
  row.push_back(job.pid == 0 ? "-" : std::to_string(job.pid));
  row.push_back(Printable(job.state_directory));
  return row;
}

nlohmann::json JobToJson(const ListedJob& job) {
  nlohmann::json json = {{"name", nullptr},
                         {"state", nullptr},
                         {"pid", nullptr},
                         {"state_directory", ValidUtf8(job.state_directory)},
                         {"workers_running", nullptr},
                         {"servers_running", nullptr},
                         {"records_committed", nullptr},
                         {"records_expected", nullptr}};
  if (job.pid != 0) json["pid"] = job.pid;
  if (!job.status) return json;
  json["name"] = job.status->name;
  json["state"] = ToString(job.status->state);
  json["workers_running"] = RunningNodes(*job.status, NodeRole::kWorker);
  json["servers_running"] = RunningNodes(*job.status, NodeRole::kServer);
  json["records_committed"] = job.status->progress.records_committed;
  json["records_expected"] = job.status->progress.records_expected;
  return json;
}

}  // namespace

int ListCommand(const ListOptions& options) {
  const RunningJobs running = FindRunningJobs();
  std::vector<ListedJob> jobs;
  for (const StateDirectory& state : running.states) jobs.push_back(Ask(state));
  PrintData(options.output == OutputFormat::kJson ? JsonText(ListToJson(jobs), 2) + "\n"
                                                  : ListText(jobs));
  if (running.hidden > 0) {
    PrintNote(fmt::format("{} of other users cannot be looked at",
                          CountText(running.hidden, "muster process", "muster processes")));
  }
  return kExitSucceeded;
}

int64_t RunningNodes(const JobStatus& status, NodeRole role) {
  return std::ranges::count_if(status.nodes, [role](const NodeStatus& node) {
    return node.role == ToString(role) && node.state == NodeState::kRunning;
  });
}

std::string ListText(const std::vector<ListedJob>& jobs) {
  if (jobs.empty()) {
    return "no job runs on this machine; `muster status JOB` shows one that has ended\n";
  }
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "COMMITTED", "WORKERS", "SERVERS", "PID", "STATE DIRECTORY"}};
  for (const ListedJob& job : jobs) rows.push_back(Row(job));
  return FormatTable(rows);
}

nlohmann::json ListToJson(const std::vector<ListedJob>& jobs) {
  nlohmann::json list = nlohmann::json::array();
  for (const ListedJob& job : jobs) list.push_back(JobToJson(job));
  return {{"jobs", std::move(list)}};
}

}  // namespace muster
