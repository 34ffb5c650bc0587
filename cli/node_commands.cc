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
  if (!options.planted_bug.empty() && options.planted_bug != "no-reverify") {
    return ExitCodeOf(absl::InvalidArgumentError(
        fmt::format("--planted-bug {}: there is only no-reverify", options.planted_bug)));
  }
  master.planted_bugs.no_reverify = options.planted_bug == "no-reverify";
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
