#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/state_directory.h"
#include "host/processes/spawn.h"
#include "job/job_spec.h"
#include "master/sources/dataset_source.h"
#include "proto/messages/node_role.h"

namespace muster {

/// The plan of `muster run`, which --dry-run prints. A value.
struct RunPlan {
  JobSpec job;
  std::string job_file;
  /// The folder of the job file. Relative commands are looked up here, and nodes run here.
  std::string base_directory;
  /// This program. It is also the program of master and servers, unless a test names another one.
  std::string program;
  /// The program of the scaler. It is this program, even if a test names another one for master and
  /// servers.
  std::string scaler_program;
  std::string master_address;  // the address for all other processes
  std::string master_listen;   // the address on which it listens; empty: the same
  /// The port of the REST interface and the dashboard. All scalers of the run have the same, so
  /// that an open page finds the next one.
  uint16_t rest_port = 0;
  std::string run_id;
  std::string job_id;        // empty: the master takes it from its journal
  std::string certificates;  // directory; empty: connections are plain text
  /// The namespace of a job on Kubernetes. If empty, workers and servers are processes of this
  /// machine.
  std::string cluster_namespace;
  std::vector<std::string> master_flags;  // passed to the master unchanged
  std::string trainer;                    // absolute
  std::vector<SourcePreview> datasets;
};

/// Where a trainer's command is looked up.
struct SearchPath {
  std::string base_directory;
  std::string path;  // the PATH variable
};

/// The absolute path of the program `name`. With a slash, it is relative to the base directory.
/// Otherwise it is looked up in PATH. NotFound and PermissionDenied say where it was looked up.
absl::StatusOr<std::string> FindProgram(const std::string& name, const SearchPath& where);

/// Called while a port of the job file is taken. If it returns true, the port is tried again. A
/// killed run may leave a master that is still ending and holds the port.
using RetryPort = std::function<bool()>;

/// The numeric address on which the master will listen. `wanted` is "host:port". Port 0 means a
/// free port of that host in [20000, 32000), below the ephemeral range. On an ephemeral port, a
/// client that retries a connection to a dead listener can connect to itself and keep the port.
/// `seed` says where the search begins. Errors: the port is taken, or no port is free.
absl::StatusOr<std::string> ChooseMasterAddress(const std::string& wanted, uint64_t seed,
                                                const RetryPort& retry = nullptr);

/// The address with which other processes reach a master that listens on `listen`.
std::string AddressForOthers(const std::string& listen, const JobSpec& job);

/// The same for the port of the REST interface at `host`. If `wanted` is 0, it is a free port other
/// than that of `taken`, which the master has but does not listen on yet.
absl::StatusOr<uint16_t> ChooseRestPort(uint32_t wanted, uint64_t seed, const std::string& taken,
                                        const std::string& host = "127.0.0.1",
                                        const RetryPort& retry = nullptr);

/// Tells other programs where the run is.
Endpoint EndpointOf(const RunPlan& plan);

/// Tells a trainer the files with which it proves that it is a worker. They are in the folder
/// `certificates`, which is empty for plain text.
void NameCredentials(const std::string& certificates,
                     std::map<std::string, std::string>* environment);

/// The command, environment and folder of a node of the plan.
NodeCommand CommandOf(const RunPlan& plan, const std::string& node, NodeRole role);

/// The commands that start servers on other machines, by the name of the server. The names of files
/// are those that docs/network.md uses for their copies.
std::map<std::string, std::string> JoinCommands(const RunPlan& plan);

/// The plan as text for people, and as JSON.
std::string DescribePlan(const RunPlan& plan);
std::string PlanToJson(const RunPlan& plan);

}  // namespace muster
