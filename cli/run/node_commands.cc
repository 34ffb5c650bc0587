#include "cli/run/node_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/status.h"
#include "base/words/exit_codes.h"
#include "cli/run/node_hosts.h"
#include "cli/run/pod_run.h"
#include "cli/run/run_command.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_security.h"
#include "cli/run/scaler_settings.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "host/processes/log_file.h"
#include "host/processes/machine.h"
#include "host/processes/spawn.h"
#include "job/file/load_job.h"
#include "job/in_cluster.h"
#include "master/service/master_main.h"
#include "ps/service/server_main.h"
#include "scaler/service/scaler_main.h"
#include "security/credentials.h"

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

absl::Status NotPassed(int fd) {
  return absl::InvalidArgumentError(
      fmt::format("descriptor {} is not open: only `muster run` can pass it", fd));
}

/// The files in the directory of --tls.
std::optional<CredentialFiles> FilesIn(const std::string& directory, Role role) {
  if (directory.empty()) return std::nullopt;
  return CredentialFilesOf(directory, role);
}

/// The addresses of the REST interface: for commands on this machine, and for people elsewhere.
RestAddress RestAddressOf(const JobSpec& job, uint16_t port) {
  const ScalerSpec& scaler = job.scaler;
  RestAddress address{.port = port, .pid = ::getpid()};
  if (!IsWildcardHost(scaler.host)) address.host = WithoutBrackets(scaler.host);
  address.advertise = scaler.advertise.empty() ? address.host : scaler.advertise;
  return address;
}

/// Everything that is pointed to outlives the result.
scaler::ScalerOptions ScalerOptionsOf(const ScalerCommandOptions& options, const RunPlan& plan) {
  const JobSpec& job = plan.job;
  const StateDirectory state(job.state_directory);
  const bool in_cluster = !plan.cluster_namespace.empty();
  return {.job = {options.job_id, job.name},
          .run_id = options.run_id,
          .master_address = options.master_address,
          .tls = FilesIn(options.tls, Role::kScaler),
          .servers = job.ps.replicas - job.servers_joined,
          .workers = job.worker.replicas,
          .limits = InitialLimitsOf(job),
          .keeper = KeeperOptionsOf(job),
          .shape = JobShapeOf(job, in_cluster ? Resources{} : MachineResources()),
          .decider = {.policies = PolicyOptionsOf(job),
                      .arbiter = ArbiterOptionsOf(job),
                      .paused = PausedPoliciesOf(job)},
          .directory = state.scaler(),
          .history_directory = state.scaler() + "/history",
          .token_file = state.token(),
          .rest_port = options.rest_port,
          .rest_host = job.scaler.host,
          .rest_advertise = job.scaler.advertise,
          .rest_names = in_cluster ? InClusterRestNames(job.name, plan.cluster_namespace)
                                   : std::vector<std::string>{},
          .on_rest =
              [&options, &job, state](uint16_t port) {
                RestAddress address = RestAddressOf(job, port);
                address.certificates = options.tls;
                return state.WriteRestAddress(address);
              },
          .beat_fd = options.beat_fd,
          .end_fd = options.end_fd,
          .passes_lost_locks = in_cluster};
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
  absl::StatusOr<LoadedJob> job =
      LoadJobIn(options.cluster_namespace, options.job_file, options.base_directory);
  if (!job.ok()) return ExitCodeOf(job.status());
  const absl::Status secure = CheckCertificatesGiven(job->spec, options.tls);
  if (!secure.ok()) return ExitCodeOf(secure);
  MasterOptions master;
  master.job = job->spec;
  master.listen_address = options.listen_address;
  master.run_id = options.run_id;
  master.job_id = options.job_id;
  const StateDirectory state(job->spec.state_directory);
  const absl::Status made = state.MakeToken();
  if (!made.ok()) return ExitCodeOf(made);
  master.token_file = state.token();
  master.journal_owner = {
      .machine = ThisMachine(), .starter = options.started_by, .take_over = options.take_over};
  master.tls = FilesIn(options.tls, Role::kMaster);
  master.retry_failed = options.retry_failed;
  absl::StatusOr<PlantedBugs> bugs = ParsePlantedBug(options.planted_bug);
  if (!bugs.ok()) return ExitCodeOf(bugs.status());
  master.planted_bugs = *bugs;
  if (options.beat_fd >= 0) {
    if (!SetCloseOnExec(options.beat_fd, true)) return ExitCodeOf(NotPassed(options.beat_fd));
    master.alive = [fd = options.beat_fd] {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
    };
  }
  const absl::Status ended = RunMaster(master);
  const int code = ExitCodeOf(ended);
  return absl::IsCancelled(ended) ? kTakenOverExit : code;
}

int ServerCommand(const ServerCommandOptions& options) {
  InitLogging(options.name, LogLevel::kInfo);
  ps::ServerOptions server;
  server.name = options.name;
  server.start = StartNumber(options.start);
  server.master_address = options.master_address;
  server.socket_directory = options.socket_directory;
  const auto ports = ParsePortRange(options.ports);
  if (!ports.ok()) return ExitCodeOf(Annotate(ports.status(), "--ports"));
  server.listen = {.address = options.address,
                   .advertise = options.advertise,
                   .ports = *ports,
                   .tls = !options.tls.empty(),
                   .insecure = options.insecure};
  server.snapshot_directory = options.snapshot_root;
  server.threads = options.threads;
  server.job_id = options.job_id;
  server.tls = FilesIn(options.tls, Role::kServer);
  server.drain_timeout = std::chrono::seconds(options.drain_timeout_s);
  server.master_away_max = std::chrono::seconds(options.master_away_max_s);
  return ExitCodeOf(ps::RunServer(server));
}

int ScalerCommand(const ScalerCommandOptions& options) {
  InitLogging("scaler", LogLevel::kInfo);
  for (int fd : {options.life_fd, options.held_fd, options.beat_fd, options.end_fd}) {
    if (fd >= 0 && !SetCloseOnExec(fd, true)) return ExitCodeOf(NotPassed(fd));
  }
  absl::StatusOr<LoadedJob> job =
      LoadJobIn(options.cluster_namespace, options.job_file, options.base_directory);
  if (!job.ok()) return ExitCodeOf(job.status());
  const absl::Status secure = CheckCertificatesGiven(job->spec, options.tls);
  if (!secure.ok()) return ExitCodeOf(secure);
  const std::string self = OwnProgram();
  const RunPlan plan{.job = job->spec,
                     .base_directory = job->base_directory,
                     .program = options.node_program.empty() ? self : options.node_program,
                     .scaler_program = self,
                     .master_address = options.master_address,
                     .run_id = options.run_id,
                     .job_id = options.job_id,
                     .certificates = options.tls,
                     .cluster_namespace = options.cluster_namespace,
                     .trainer = options.trainer};
  const StateDirectory state(job->spec.state_directory);
  const int signal_fd = BlockSignals();
  absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  absl::Cleanup remove_address = [&state] { state.RemoveRestAddress(); };
  const SystemClock clock;
  scaler::ScalerOptions scaler = ScalerOptionsOf(options, plan);
  scaler.signal_fd = signal_fd;
  HostOpener host(&plan, &options, &clock);
  scaler.open_host = [&] { return host.Open(signal_fd); };
  const absl::StatusOr<scaler::KeeperOutcome> outcome = scaler::RunScaler(scaler, &clock);
  if (!outcome.ok()) return ExitCodeOf(outcome.status());
  switch (outcome->state) {
    case scaler::KeeperOutcome::State::kJobOver:
      return kExitSucceeded;
    case scaler::KeeperOutcome::State::kStopped:
      return kExitFailed;  // if `muster run` did not request the stop, it restarts the scaler
    case scaler::KeeperOutcome::State::kBadInput:
      break;
  }
  // `muster run` shows the text after this mark.
  fmt::print(stderr, "{}the job cannot continue\n{}\n", kLogMark, outcome->reason);
  return kExitUsage;
}

std::vector<std::string> ScalerDescriptorFlags(const ScalerCommandOptions& options) {
  return {
      "--life-fd", std::to_string(options.life_fd), "--held-fd", std::to_string(options.held_fd),
      "--beat-fd", std::to_string(options.beat_fd), "--end-fd",  std::to_string(options.end_fd)};
}

}  // namespace muster
