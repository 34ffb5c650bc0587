#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/core_options.h"

/// The verbs whose process is a node of the job. `muster run` starts them, and containers may start
/// them, too. Each returns the exit code of the process: 0 after a clean stop, 2 if its input is
/// wrong (a restart does not help), kTakenOverExit if another master has taken over the job, 1
/// otherwise.
namespace muster {

struct MasterCommandOptions {
  std::string job_file;
  std::string base_directory;  // "" = the job file's folder
  std::string listen_address;
  std::string run_id;
  bool retry_failed = false;
  std::string job_id;
  std::string tls;                // directory of certificates; "" = plain text
  std::string cluster_namespace;  // the same as in RunPlan
  std::string started_by;         // a random id of the `muster run`; "" = not known
  bool take_over = false;         // from a master that may still run
  int beat_fd = -1;               // `muster run` counts signs of life there; -1: none
  std::string planted_bug;        // for tests: breaks one rule of the protocol
};
int MasterCommand(const MasterCommandOptions& options);

/// The rule that --planted-bug removes from the master; "": none. kInvalidArgument if there is no
/// such bug, or if this build has none (as any release build).
absl::StatusOr<PlantedBugs> ParsePlantedBug(const std::string& name);

struct ServerCommandOptions {
  std::string name;
  uint64_t start = 0;
  std::string master_address;
  std::string socket_directory;
  std::string snapshot_root;  // the same as ps::ServerOptions::snapshot_directory
  std::string address;        // the same as in ps::ListenWish
  std::string advertise;
  std::string ports = "0";
  bool insecure = false;
  uint32_t threads = 1;
  std::string job_id;
  std::string tls;  // directory of certificates; "" = plain text
  uint32_t drain_timeout_s = 8;
  uint32_t master_away_max_s = 0;
};
int ServerCommand(const ServerCommandOptions& options);

struct ScalerCommandOptions {
  std::string job_file;
  std::string base_directory;  // "" = the job file's folder
  std::string master_address;
  std::string run_id;
  std::string job_id;
  std::string tls;                // directory of certificates; "" = plain text
  std::string trainer;            // absolute
  std::string node_program;       // the program of the servers; "" = this one
  uint16_t rest_port = 0;         // 0: a free one
  std::string cluster_namespace;  // the same as in RunPlan
  // Descriptors that are inherited from `muster run`: see scaler/service/scaler_main.h. -1 = none.
  int life_fd = -1;
  int held_fd = -1;
  int beat_fd = -1;
  int end_fd = -1;
};
int ScalerCommand(const ScalerCommandOptions& options);
/// The flags that `muster run` appends to the scaler's command, so that the scaler finds these
/// descriptors.
std::vector<std::string> ScalerDescriptorFlags(const ScalerCommandOptions& options);

}  // namespace muster
