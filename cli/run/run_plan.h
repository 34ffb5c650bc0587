#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "host/processes/spawn.h"
#include "job/job_spec.h"
#include "master/sources/dataset_source.h"
#include "proto/messages/node_role.h"

namespace muster {

/// The plan of `muster run`; --dry-run prints it. A value.
struct RunPlan {
  JobSpec job;
  std::string job_file;
  /// The folder of the job file: relative commands are looked up here, and nodes run here.
  std::string base_directory;
  /// The program that is the master and the servers: this one.
  std::string program;
  /// The program that is the scaler: this one, also where a test has another for the rest.
  std::string scaler_program;
  std::string master_address;
  /// Of the REST interface and the dashboard, on 127.0.0.1: the same for every scaler of the run,
  /// so that an open page finds the next one.
  uint16_t rest_port = 0;
  std::string run_id;
  std::string job_id;                     // empty: the master and its journal say
  std::vector<std::string> master_flags;  // passed on unchanged
  std::string trainer;                    // absolute
  std::vector<SourcePreview> datasets;
};

/// The places in which a trainer's command is looked up.
struct SearchPath {
  std::string base_directory;
  std::string path;  // the PATH variable
};

/// The absolute path of the program `name`: relative to the base directory if it has a slash,
/// otherwise looked up in PATH. NotFound and PermissionDenied say where it was looked up.
absl::StatusOr<std::string> FindProgram(const std::string& name, const SearchPath& where);

/// The address where the master listens, by number: `wanted` is "host:port" with a loopback host
/// (127.0.0.0/8, [::1], localhost). Port 0 means a free one of that host below the ephemeral range,
/// in [20000, 32000): a client that retries a connection to a dead listener on an ephemeral port
/// can connect to itself and keep it. `seed` chooses where the search begins. Errors when the port
/// is taken, or none is free.
absl::StatusOr<std::string> ChooseMasterAddress(const std::string& wanted, uint64_t seed);

/// The same of the REST interface on 127.0.0.1; `wanted` 0 means a free port, and it is not `taken`
/// (by the master, which does not listen yet).
absl::StatusOr<uint16_t> ChooseRestPort(uint32_t wanted, uint64_t seed, const std::string& taken);

/// The command, environment and folder of a node of the plan.
NodeCommand CommandOf(const RunPlan& plan, const std::string& node, NodeRole role);

/// The plan for people, and as JSON.
std::string DescribePlan(const RunPlan& plan);
std::string PlanToJson(const RunPlan& plan);

}  // namespace muster
