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
  std::string master_address;  // as all others reach it
  std::string master_listen;   // as it listens; empty: as above
  /// Of the REST interface and the dashboard: the same for every scaler of the run,
  /// so that an open page finds the next one.
  uint16_t rest_port = 0;
  std::string run_id;
  std::string job_id;        // empty: the master and its journal say
  std::string certificates;  // directory; empty: connections are plain text
  /// Of the job on Kubernetes; empty: workers and servers are processes of this machine.
  std::string cluster_namespace;
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

/// Called while a port of the job file is taken; true means: look again. A run that was killed may
/// leave a master that is still dying and has the port.
using RetryPort = std::function<bool()>;

/// The address where the master listens, by number: `wanted` is "host:port". Port 0 means a free
/// one of that host below the ephemeral range, in [20000, 32000): a client that retries a
/// connection to a dead listener on an ephemeral port can connect to itself and keep it. `seed`
/// chooses where the search begins. Errors when the port is taken, or none is free.
absl::StatusOr<std::string> ChooseMasterAddress(const std::string& wanted, uint64_t seed,
                                                const RetryPort& retry = nullptr);

/// How other processes reach a master that listens there.
std::string AddressForOthers(const std::string& listen, const JobSpec& job);

/// The same of the REST interface at `host`; `wanted` 0 means a free port, and it is not `taken`
/// (by the master, which does not listen yet).
absl::StatusOr<uint16_t> ChooseRestPort(uint32_t wanted, uint64_t seed, const std::string& taken,
                                        const std::string& host = "127.0.0.1",
                                        const RetryPort& retry = nullptr);

/// Where other programs find the run.
Endpoint EndpointOf(const RunPlan& plan);

/// Tells a trainer the files with which it proves that it is a worker; `certificates`: their
/// folder, empty for plain text.
void NameCredentials(const std::string& certificates,
                     std::map<std::string, std::string>* environment);

/// The command, environment and folder of a node of the plan.
NodeCommand CommandOf(const RunPlan& plan, const std::string& node, NodeRole role);

/// By name, the servers that join from other machines, each with the command that starts it there.
/// Files are named as docs/network.md copies them.
std::map<std::string, std::string> JoinCommands(const RunPlan& plan);

/// The plan for people, and as JSON.
std::string DescribePlan(const RunPlan& plan);
std::string PlanToJson(const RunPlan& plan);

}  // namespace muster
