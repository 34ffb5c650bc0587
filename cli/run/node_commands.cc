#include "cli/run/node_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/run/run_command.h"
#include "cli/run/run_plan.h"
#include "cli/run/scaler_settings.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "host/processes/local_host.h"
#include "host/processes/log_file.h"
#include "host/processes/machine.h"
#include "host/processes/spawn.h"
#include "job/file/load_job.h"
#include "master/service/master_main.h"
#include "ps/service/server_main.h"
#include "scaler/service/scaler_main.h"

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
    case absl::StatusCode::kDataLoss:  // a restart does not help
      return kExitUsage;
    default:
      return kExitFailed;
  }
}

/// This machine, on which the plan's nodes run. The plan outlives it.
LocalHost::Options HostOf(const RunPlan& plan, const StateDirectory& state,
                          const ScalerCommandOptions& options) {
  return {.program = plan.scaler_program,
          .log_directory = state.logs(),
          .life_fd = options.life_fd,
          .held_fd = options.held_fd,
          .socket_directory = state.nodes(),
          .run_id = plan.run_id,
          .command_of = [&plan](const std::string& node, NodeRole role) {
            return CommandOf(plan, node, role);
          }};
}

}  // namespace

absl::StatusOr<PlantedBugs> ParsePlantedBug(const std::string& name) {
  PlantedBugs bugs;
  if (name.empty()) return bugs;
#if MUSTER_WITH_FAILPOINTS
  if (name != "no-reverify") {
    return absl::InvalidArgumentError(
        fmt::format("--planted-bug {}: only no-reverify exists", name));
  }
  bugs.no_reverify = true;
  return bugs;
#else
  return absl::InvalidArgumentError(
      fmt::format("--planted-bug {}: this build has none. Configure it with -DMUSTER_FAILPOINTS=ON "
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
  const StateDirectory state(job->spec.state_directory);
  const absl::Status made = state.MakeToken();
  if (!made.ok()) return ExitCodeOf(made);
  master.token_file = state.token();
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
  server.start = StartNumber(options.start);
  server.master_address = options.master_address;
  server.socket_directory = options.socket_directory;
  server.threads = options.threads;
  server.job_id = options.job_id;
  server.drain_timeout = std::chrono::seconds(options.drain_timeout_s);
  return ExitCodeOf(ps::RunServer(server));
}

int ScalerCommand(const ScalerCommandOptions& options) {
  InitLogging("scaler", LogLevel::kInfo);
  for (int fd : {options.life_fd, options.held_fd, options.beat_fd}) {
    if (fd >= 0 && ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return ExitCodeOf(absl::InvalidArgumentError(
          fmt::format("descriptor {} is not open: only `muster run` can pass it", fd)));
    }
  }
  absl::StatusOr<LoadedJob> job = LoadJob(options.job_file, options.base_directory);
  if (!job.ok()) return ExitCodeOf(job.status());
  const std::string self = OwnProgram();
  const RunPlan plan{.job = job->spec,
                     .base_directory = job->base_directory,
                     .program = options.node_program.empty() ? self : options.node_program,
                     .scaler_program = self,
                     .master_address = options.master_address,
                     .run_id = options.run_id,
                     .job_id = options.job_id,
                     .trainer = options.trainer};
  const StateDirectory state(job->spec.state_directory);
  const int signal_fd = BlockSignals();
  absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  absl::Cleanup remove_address = [&state] { state.RemoveRestAddress(); };
  const SystemClock clock;
  const absl::StatusOr<scaler::KeeperOutcome> outcome =
      scaler::RunScaler({.job = {options.job_id, job->spec.name},
                         .run_id = options.run_id,
                         .master_address = options.master_address,
                         .servers = job->spec.ps.replicas,
                         .workers = job->spec.worker.replicas,
                         .limits = InitialLimitsOf(job->spec),
                         .keeper = KeeperOptionsOf(job->spec),
                         .shape = JobShapeOf(job->spec, MachineResources()),
                         .decider = {.policies = PolicyOptionsOf(job->spec),
                                     .arbiter = ArbiterOptionsOf(job->spec),
                                     .paused = PausedPoliciesOf(job->spec)},
                         .directory = state.scaler(),
                         .history_directory = state.scaler() + "/history",
                         .open_host = [&] { return LocalHost::Open(HostOf(plan, state, options)); },
                         .token_file = state.token(),
                         .rest_port = options.rest_port,
                         .on_rest =
                             [&state](uint16_t port) {
                               return state.WriteRestAddress({.port = port, .pid = ::getpid()});
                             },
                         .beat_fd = options.beat_fd,
                         .signal_fd = signal_fd},
                        &clock);
  if (!outcome.ok()) return ExitCodeOf(outcome.status());
  switch (outcome->state) {
    case scaler::KeeperOutcome::State::kJobOver:
      return kExitSucceeded;
    case scaler::KeeperOutcome::State::kStopped:
      return kExitFailed;  // if the caller did not request the stop, it restarts the scaler
    case scaler::KeeperOutcome::State::kBadInput:
      break;
  }
  // `muster run` shows the text after the mark.
  fmt::print(stderr, "{}the job cannot continue\n{}\n", kLogMark, outcome->reason);
  return kExitUsage;
}

std::vector<std::string> ScalerDescriptorFlags(const ScalerCommandOptions& options) {
  return {"--life-fd", std::to_string(options.life_fd),
          "--held-fd", std::to_string(options.held_fd),
          "--beat-fd", std::to_string(options.beat_fd)};
}

}  // namespace muster
