#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/show/output.h"
#include "cli/state/cluster_target.h"
#include "proto/messages/node_role.h"
#include "proto/status/job_status.h"

namespace muster {

struct ListOptions {
  ClusterTarget cluster = {};
  OutputFormat output = OutputFormat::kText;
};
/// `muster list`: the jobs that run on this machine. Returns the exit code of the process.
int ListCommand(const ListOptions& options);

/// How many nodes of this role are in the state `running`. Pure.
int64_t RunningNodes(const JobStatus& status, NodeRole role);

/// A job that runs.
struct ListedJob {
  std::string state_directory;
  int64_t pid = 0;                  // of `muster run`; 0: it is about to begin or to end
  std::optional<JobStatus> status;  // absent: its master does not answer
};
/// A table, or one sentence if there are no jobs. Pure.
std::string ListText(const std::vector<ListedJob>& jobs);
/// {"jobs": [{"name", "state", "pid", "state_directory", "workers_running", "servers_running",
/// "records_committed", "records_expected"}]}. Values are null if the master does not answer. Pure.
nlohmann::json ListToJson(const std::vector<ListedJob>& jobs);

}  // namespace muster
