#include "cli/run/run_command.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/run/job_pods.h"
#include "cli/run/job_runner.h"
#include "cli/run/pod_environment.h"
#include "cli/run/pod_run.h"
#include "cli/run/run_checks.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_security.h"
#include "cli/run/source_looks.h"
#include "cli/run/summary.h"
#include "cli/state/job_target.h"
#include "host/processes/machine.h"
#include "host/processes/spawn.h"
#include "job/file/load_job.h"
#include "job/in_cluster.h"
#include "master/service/epoch_end_options.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kScalerLeaveMax{10};
/// Processes of a deleted pod may take this long to end.
constexpr std::chrono::seconds kLockPatience{10};
/// A port of the job file may be taken for this long. It is tried again at this interval.
constexpr std::chrono::seconds kPortPatience{5};
constexpr std::chrono::milliseconds kPortPause{20};

uint64_t RandomNumber() {
  uint64_t number = 0;
  [[maybe_unused]] const ssize_t got = ::getrandom(&number, sizeof(number), 0);
  return number;
}

/// Finds the workers' program. In the cluster it is in the image of the workers' pods, so it is
/// looked up there.
absl::StatusOr<std::string> FindTrainer(const LoadedJob& job, bool in_cluster) {
  if (job.spec.worker.command.empty()) {
    return absl::InvalidArgumentError(
        "spec.replicaSpecs.worker.command is empty; name the trainer, for example command: "
        "[./my_trainer]");
  }
  const std::string& name = job.spec.worker.command.front();
  if (in_cluster) return name;
  return FindProgram(
      name, {.base_directory = job.base_directory, .path = ReadEnvironment("PATH").value_or("")});
}

/// Waits for the ports of a run that was just killed, up to kPortPatience in all.
RetryPort WaitForPorts() {
  return [left = std::chrono::milliseconds(kPortPatience)]() mutable {
    if (left == kPortPatience) PrintNote("a port of the job file is taken; trying for 5 s");
    left -= kPortPause;
    std::this_thread::sleep_for(kPortPause);
    return left > std::chrono::milliseconds(0);
  };
}

absl::StatusOr<RunPlan> MakePlan(const LoadedJob& job, const RunOptions& options,
                                 const PodEnvironment& pod, const std::string& self) {
  RunPlan plan{.job = job.spec,
               .job_file = job.path,
               .base_directory = job.base_directory,
               .program = options.node_program.empty() ? self : options.node_program,
               .scaler_program = self,
               .run_id = fmt::format("{:016x}", RandomNumber()),
               .cluster_namespace = pod.job_namespace};
  if (!options.run_id.empty()) plan.run_id = options.run_id;
  if (options.in_cluster) plan.run_id = pod.run_id;
  plan.master_flags = {"--started-by", fmt::format("{:016x}", RandomNumber())};
  // An earlier pod may still run on a lost machine.
  if (options.in_cluster) plan.master_flags.push_back("--take-over");
  if (options.retry_failed) plan.master_flags.push_back("--retry-failed");
  if (!options.planted_bug.empty()) {
    plan.master_flags.insert(plan.master_flags.end(), {"--planted-bug", options.planted_bug});
  }
  MUSTER_ASSIGN_OR_RETURN(plan.trainer, FindTrainer(job, options.in_cluster));
  MUSTER_ASSIGN_OR_RETURN(plan.datasets, SourceCatalog::Preview(job.spec));
  MUSTER_RETURN_IF_ERROR(CheckSameJob(job, StateDirectory(job.spec.state_directory)));
  const RetryPort retry = options.dry_run ? nullptr : WaitForPorts();
  MUSTER_ASSIGN_OR_RETURN(plan.master_listen,
                          ChooseMasterAddress(job.spec.master_address, RandomNumber(), retry));
  // In the cluster, the scaler and the verbs in this pod need neither the Service nor a name
  // server.
  plan.master_address = options.in_cluster ? JoinHostPort("127.0.0.1", kInClusterMasterPort)
                                           : AddressForOthers(plan.master_listen, job.spec);
  MUSTER_ASSIGN_OR_RETURN(plan.rest_port,
                          ChooseRestPort(job.spec.scaler.port, RandomNumber(), plan.master_listen,
                                         job.spec.scaler.host, retry));
  return plan;
}

RunSupervisorOptions ToSupervisorOptions(const JobSpec& job, const StartsBefore& before) {
  RunSupervisorOptions options;
  options.master_starts_before = before.master;
  options.scaler_starts_before = before.scaler;
  options.restarts = {.crash_loop_exits = job.restarts.crash_loop_exits,
                      .backoff_initial = job.restarts.backoff_initial,
                      .backoff_max = job.restarts.backoff_max};
  options.drain_timeout = job.drain_timeout;
  return options;
}

/// Takes the state directory for the run.
absl::StatusOr<StateLock> TakeStateDirectory(const LoadedJob& job, const StateDirectory& state,
                                             const RunPlan& plan, bool in_cluster) {
  MUSTER_RETURN_IF_ERROR(state.Create());
  const absl::Status writable = MakeSnapshotsWritable(job.spec);
  // A run that continues could use the folder before. Its trouble may be over soon. Until then,
  // `muster status` shows the servers' errors as the reason.
  if (!writable.ok() && (!in_cluster || StartsOf(state, plan.run_id).master == 0)) return writable;
  if (!writable.ok()) PrintNote(fmt::format("the run goes on: {}", Message(writable)));
  MUSTER_ASSIGN_OR_RETURN(StateLock lock,
                          in_cluster ? StateLock::AcquireOrPass(state, kLockPatience, PrintNote)
                                     : StateLock::Acquire(state));
  if (in_cluster) MUSTER_RETURN_IF_ERROR(TakeToken(state, kInClusterTokenFile));
  MUSTER_RETURN_IF_ERROR(state.MakeToken());
  if (job.path != state.job_copy()) {
    MUSTER_FAILPOINT_OR_RETURN("job-copy.before-write");
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(state.job_copy(), job.text));
  }
  MUSTER_FAILPOINT_OR_RETURN("summary.before-delete");
  ::unlink(state.summary().c_str());
  return lock;
}

/// Finds the job's id, makes its certificates, and writes the files with which other programs find
/// the run. Requires: the state directory is taken. Signals are blocked, because reading a journal
/// starts threads.
absl::Status Announce(const StateDirectory& state, const Clock& clock, RunPlan* plan) {
  const std::string drawn = fmt::format("{:016x}{:016x}", RandomNumber(), RandomNumber());
  MUSTER_ASSIGN_OR_RETURN(const std::string fresh, FreshJobId(plan->job, drawn, clock.Wall()));
  plan->job_id = JobIdOf(state, fresh);
  MUSTER_ASSIGN_OR_RETURN(plan->certificates,
                          PrepareCertificates(plan->job, state, plan->job_id, clock.Wall()));
  return state.WriteEndpoint(EndpointOf(*plan));
}

/// Renews certificates, because a run may take longer than they are valid.
void RenewCertificates(const RunPlan& plan, const StateDirectory& state, const Clock& clock) {
  const absl::Status renewed =
      PrepareCertificates(plan.job, state, plan.job_id, clock.Wall()).status();
  if (!renewed.ok()) PrintNote(fmt::format("certificates: {}", Message(renewed)));
}

/// Prints lines on stderr if reading the data takes long.
ProgressFn ShowReading() {
  return [clock = SystemClock(), last = SystemClock().Now()](const SourceProgress& at) mutable {
    if (clock.Now() - last < std::chrono::seconds(2)) return;
    last = clock.Now();
    fmt::print(stderr, "reading dataset '{}': {} of {} bytes\n", at.dataset,
               CountText(at.bytes_done), CountText(at.bytes_total));
  };
}

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

bool IsIgnored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// The signals that stop the command. Signals that were ignored when the command began (`nohup`,
/// the background of a script) are left out: they stay ignored because they are neither blocked nor
/// handled.
sigset_t StopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : kStopSignals) {
    if (!IsIgnored(signal)) ::sigaddset(&signals, signal);
  }
  return signals;
}

/// While this object lives, SIGINT, SIGTERM and SIGHUP end the command at once, because there is
/// nothing to clean up and reading folders may take long. Afterwards, signals are held again.
class EndsAtOnce {
 public:
  /// The command then ends with the exit code `code`.
  explicit EndsAtOnce(int code) {
    code_ = code;
    for (const int signal : kStopSignals) {
      if (!IsIgnored(signal)) ::signal(signal, End);
    }
    const sigset_t signals = StopSignals();
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  }
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
  ~EndsAtOnce() {
    HoldSignals();
    for (const int signal : kStopSignals) {
      struct sigaction former{};
      ::sigaction(signal, nullptr, &former);
      if (former.sa_handler == End) ::signal(signal, SIG_DFL);
    }
  }

 private:
  static void End(int) {
    constexpr std::string_view kWords = "muster: stopped before the job was started\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords.data(), kWords.size());
    ::_exit(code_);
  }

  static inline volatile sig_atomic_t code_ = kExitDrained;
};

}  // namespace

void HoldSignals() {
  const sigset_t signals = StopSignals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
}

int BlockSignals() {
  HoldSignals();
  const sigset_t signals = StopSignals();
  ::signal(SIGPIPE, SIG_IGN);
  return ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

namespace {

/// Ends a run that did not begin.
int EndBefore(const RunOptions& options, const std::string& outcome, int code,
              const absl::Status& why) {
  WriteTerminationLog(options.termination_log,
                      TerminationMessage({outcome, code, std::string(Message(why))}));
  return PrintError(Message(why), code);
}

int Refuse(const RunOptions& options, const absl::Status& why) {
  return EndBefore(options, "refused", options.in_cluster ? RefusalInCluster(why) : kExitUsage,
                   why);
}

absl::StatusOr<PodEnvironment> ReadJobPod() {
  MUSTER_ASSIGN_OR_RETURN(PodEnvironment pod, ParseJobPod(ReadEnvironment));
  MUSTER_RETURN_IF_ERROR(
      CheckJobFile(ReadEnvironment(kDigestVariable).value_or(""), kInClusterDigestFile));
  return pod;
}

/// Does what must be done before a run in the job's own pod. Returns the exit code if there must be
/// no run.
std::optional<int> BeginInCluster(const RunOptions& options, const RunPlan& plan,
                                  std::unique_ptr<JobPods>* opened) {
  absl::StatusOr<std::unique_ptr<JobPods>> here = JobPods::Open(plan);
  if (!here.ok()) return Refuse(options, here.status());
  JobPods* const job_pods = (*opened = *std::move(here)).get();
  const absl::Status rights = AskWhileDenied([&] { return job_pods->CheckRights(); },
                                             [] { std::this_thread::sleep_for(kRightsPause); });
  if (!rights.ok()) return Refuse(options, rights);
  // This run's master will treat nodes of earlier runs as dead, so they must have ended.
  const absl::Status ended = job_pods->EndFormer();
  if (!ended.ok()) return Refuse(options, ended);
  const absl::StatusOr<std::vector<nlohmann::json>> all = job_pods->All();
  if (!all.ok()) return Refuse(options, all.status());
  const absl::Status tries = CheckPodsInVain(*all, plan.run_id);
  if (tries.ok()) return std::nullopt;
  // The Job must not make pods for ever.
  job_pods->End();
  return EndBefore(options, "failed", kExitFailed, tries);
}

/// On Kubernetes, the cluster judges the limits.
std::string MachineWarning(const RunPlan& plan) {
  return plan.cluster_namespace.empty() ? LimitsBeyond(plan.job, MachineResources().memory_bytes)
                                        : "";
}

int DryRun(const RunOptions& options, const LoadedJob& job, const RunPlan& plan) {
  const absl::Status usable =
      CheckDirectories(job, options.progress ? ShowReading() : ProgressFn());
  if (!usable.ok()) return PrintError(Message(usable), kExitUsage);
  const absl::StatusOr<std::vector<SourceLook>> looks = LookAtSources(job.spec);
  if (!looks.ok()) return PrintError(Message(looks.status()), kExitUsage);
  for (const std::string& wait : EndsAhead(job.spec, SystemClock().Wall())) PrintNote(wait);
  const SourceFindings findings = JudgeLooks(*looks);
  for (const std::string& note : findings.notes) PrintNote(note);
  if (const std::string warning = MachineWarning(plan); !warning.empty()) PrintNote(warning);
  for (const std::string& wrong : findings.errors) PrintNote(wrong);
  if (!findings.errors.empty()) return kExitUsage;
  PrintData(options.output == OutputFormat::kJson ? PlanToJson(plan) : DescribePlan(plan));
  return kExitSucceeded;
}

/// Stores and prints how the run ended.
int Finish(const RunOptions& options, const StateDirectory& state, const SummaryInput& summary) {
  const RunOutcome& outcome = summary.outcome;
  const int code = ExitCode(outcome.state);
  WriteTerminationLog(options.termination_log,
                      TerminationMessage({ToString(outcome.state), code, outcome.reason,
                                          /*progressed=*/summary.trained_records > 0}));
  // If the run continues elsewhere, it has no summary yet.
  using State = RunOutcome::State;
  if (outcome.state == State::kLeft || outcome.state == State::kGivenUp) return code;
  const nlohmann::json json = SummaryToJson(summary);
  absl::Status written = MUSTER_FAILPOINT_STATUS("summary.before-write");
  const bool taken_over = outcome.state == State::kTakenOver;
  if (written.ok() && !taken_over) {
    written = WriteFileAtomically(state.summary(), JsonText(json, 2) + "\n");
  }
  MUSTER_FAILPOINT("summary.after-write");
  if (!written.ok()) PrintError(Message(written), kExitFailed);
  PrintData(options.output == OutputFormat::kJson ? JsonText(json, 2) + "\n"
                                                  : SummaryText(summary));
  return code;
}

JobRunner::Options RunnerOptions(const RunOptions& options, const RunPlan& plan,
                                 const StateDirectory& state, JobPods* pods) {
  // If the run id was drawn at random, no earlier process had this run.
  const bool continued = options.in_cluster || !options.run_id.empty();
  const StartsBefore before = continued ? StartsOf(state, plan.run_id) : StartsBefore();
  JobRunner::Options runner{.plan = plan, .supervisor = ToSupervisorOptions(plan.job, before)};
  runner.parent = options.end_with;
  runner.progress_fd = options.in_cluster ? STDOUT_FILENO : STDERR_FILENO;
  if (options.progress) runner.progress = ProgressDisplay::ModeOf(runner.progress_fd);
  if (!options.in_cluster) return runner;
  if (options.progress) runner.progress = ProgressDisplay::Mode::kLines;
  // The scaler's and the master's timeouts together fit into the usual grace period of a pod, 30 s.
  runner.supervisor.scaler_stop_timeout = kScalerLeaveMax;
  runner.supervisor.continues_elsewhere = true;
  runner.leaves_at_signal = true;
  runner.end_nodes = [pods] { pods->End(); };
  runner.on_progress = [log = options.termination_log] {
    WriteTerminationLog(log, ProgressMessage());
  };
  runner.host = ReadEnvironment(kPodMachineVariable).value_or("");
  return runner;
}

}  // namespace

int RunCommand(const RunOptions& options) {
  if (options.end_with != 0 && options.end_with != ::getppid()) {
    return PrintError(fmt::format("--end-with: the process that started this one is {}, and not {}",
                                  ::getppid(), options.end_with),
                      kExitUsage);
  }
  // If a pod is moved while it begins, its Job must not end. So the exit code in the cluster is
  // kLeftExit.
  std::optional<EndsAtOnce> at_once(std::in_place, options.in_cluster ? kLeftExit : kExitDrained);
  PodEnvironment pod;
  if (options.in_cluster) {
    absl::StatusOr<PodEnvironment> here = ReadJobPod();
    if (!here.ok()) return Refuse(options, here.status());
    pod = *std::move(here);
  }
  absl::StatusOr<LoadedJob> job =
      options.job_text.empty()
          ? LoadJobIn(pod.job_namespace, options.job_file, "")
          : ReadJob(options.job_text, options.job_file,
                    options.job_folder.empty() ? std::filesystem::current_path().string()
                                               : options.job_folder);
  if (!job.ok()) return Refuse(options, job.status());
  const absl::Status epochs = EpochEndOptionsOf(job->spec).status();
  if (!epochs.ok()) return Refuse(options, epochs);
  const std::string self = OwnProgram();
  absl::StatusOr<RunPlan> plan = MakePlan(*job, options, pod, self);
  if (!plan.ok()) return Refuse(options, plan.status());
  if (options.dry_run) return DryRun(options, *job, *plan);
  std::unique_ptr<JobPods> pods;
  if (options.in_cluster) {
    if (const std::optional<int> code = BeginInCluster(options, *plan, &pods)) return *code;
  }
  at_once.reset();
  const StateDirectory state(job->spec.state_directory);
  const absl::StatusOr<StateLock> lock = TakeStateDirectory(*job, state, *plan, options.in_cluster);
  if (!lock.ok()) return Refuse(options, lock.status());
  const int signal_fd = BlockSignals();
  absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  absl::Cleanup remove_endpoint = [&state] { state.RemoveEndpoint(); };
  const SystemClock clock;
  const absl::Status announced = Announce(state, clock, &*plan);
  if (!announced.ok()) return Refuse(options, announced);
  for (const std::string& warning : {SecurityWarning(job->spec), MachineWarning(*plan)}) {
    if (!warning.empty()) PrintNote(warning);
  }
  for (const auto& [name, command] : JoinCommands(*plan)) {
    PrintNote(
        fmt::format("no record is trained before {} has joined. On its machine, with copies "
                    "of the token and the certificates (docs/network.md): {}",
                    name, command));
  }

  SummaryInput summary;
  {
    JobRunner::Options runner_options = RunnerOptions(options, *plan, state, pods.get());
    runner_options.program = self;
    runner_options.signal_fd = signal_fd;
    runner_options.lock_fd = lock->fd();
    runner_options.renew = [&] { RenewCertificates(*plan, state, clock); };
    JobRunner runner(std::move(runner_options), &clock);
    summary = runner.Run();
  }
  // The endpoint file now belongs to the other run.
  if (summary.outcome.state == RunOutcome::State::kTakenOver) std::move(remove_endpoint).Cancel();
  return Finish(options, state, summary);
}

}  // namespace muster
