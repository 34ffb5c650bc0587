#include "cli/node_commands.h"

#include "base/log.h"
#include "base/status.h"
#include "cli/job_loader.h"
#include "cli/output.h"
#include "master/service/master_main.h"
#include "ps/service/server_main.h"

namespace muster {
namespace {

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitSucceeded;
  Log(LogLevel::kError, "{}", Message(status));
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:  // starting again mends nothing
      return kExitUsage;
    default:
      return kExitFailed;
  }
}

}  // namespace

absl::StatusOr<PlantedBugs> ParsePlantedBug(const std::string& name) {
  PlantedBugs bugs;
  if (name.empty()) return bugs;
#if MUSTER_WITH_FAILPOINTS
  if (name != "no-reverify") {
    return absl::InvalidArgumentError(
        fmt::format("--planted-bug {}: there is only no-reverify", name));
  }
  bugs.no_reverify = true;
  return bugs;
#else
  return absl::InvalidArgumentError(
      fmt::format("--planted-bug {}: this build has none: configure it with -DMUSTER_FAILPOINTS=ON "
                  "(any build type but Release has them)",
                  name));
#endif
}

int MasterCommand(const MasterCommandOptions& options) {
  InitLogging("master", LogLevel::kInfo);
  absl::StatusOr<LoadedJob> job = LoadJob(options.job_file, options.base_directory);
  if (!job.ok()) return ExitCodeOf(job.status());
  MasterOptions master;
  master.job = job->spec;
  master.listen_address = options.listen_address;
  master.run_id = options.run_id;
  master.job_id = options.job_id;
  master.retry_failed = options.retry_failed;
  absl::StatusOr<PlantedBugs> bugs = ParsePlantedBug(options.planted_bug);
  if (!bugs.ok()) return ExitCodeOf(bugs.status());
  master.planted_bugs = *bugs;
  return ExitCodeOf(RunMaster(master));
}

int ServerCommand(const ServerCommandOptions& options) {
  InitLogging(options.name, LogLevel::kInfo);
  ps::ServerOptions server;
  server.name = options.name;
  server.master_address = options.master_address;
  server.socket_directory = options.socket_directory;
  server.threads = options.threads;
  server.job_id = options.job_id;
  return ExitCodeOf(ps::RunServer(server));
}

}  // namespace muster
