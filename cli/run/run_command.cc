#include "cli/run/run_command.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/run/job_runner.h"
#include "cli/run/run_checks.h"
#include "cli/run/run_plan.h"
#include "cli/run/source_looks.h"
#include "cli/run/summary.h"
#include "cli/state/job_target.h"
#include "host/processes/spawn.h"
#include "job/file/load_job.h"
#include "master/service/epoch_end_options.h"

namespace muster {
namespace {

uint64_t RandomNumber() {
  uint64_t number = 0;
  [[maybe_unused]] const ssize_t got = ::getrandom(&number, sizeof(number), 0);
  return number;
}

absl::StatusOr<RunPlan> MakePlan(const LoadedJob& job, const RunOptions& options,
                                 const std::string& self) {
  RunPlan plan{.job = job.spec,
               .job_file = job.path,
               .base_directory = job.base_directory,
               .program = options.node_program.empty() ? self : options.node_program,
               .scaler_program = self,
               .run_id = fmt::format("{:016x}", RandomNumber())};
  if (options.retry_failed) plan.master_flags.push_back("--retry-failed");
  if (!options.planted_bug.empty()) {
    plan.master_flags.insert(plan.master_flags.end(), {"--planted-bug", options.planted_bug});
  }
  if (job.spec.worker.command.empty()) {
    return absl::InvalidArgumentError(
        "spec.replicaSpecs.worker.command is empty; name the trainer, for example command: "
        "[./my_trainer]");
  }
  const char* path = std::getenv("PATH");
  MUSTER_ASSIGN_OR_RETURN(plan.trainer, FindProgram(job.spec.worker.command.front(),
                                                    {.base_directory = job.base_directory,
                                                     .path = path == nullptr ? "" : path}));
  MUSTER_ASSIGN_OR_RETURN(plan.datasets, SourceCatalog::Preview(job.spec));
  MUSTER_RETURN_IF_ERROR(CheckSameJob(job, StateDirectory(job.spec.state_directory)));
  MUSTER_ASSIGN_OR_RETURN(plan.master_address,
                          ChooseMasterAddress(job.spec.master_address, RandomNumber()));
  MUSTER_ASSIGN_OR_RETURN(
      plan.rest_port, ChooseRestPort(job.spec.scaler.port, RandomNumber(), plan.master_address));
  return plan;
}

RunSupervisorOptions ToSupervisorOptions(const JobSpec& job) {
  RunSupervisorOptions options;
  options.restarts = {.crash_loop_exits = job.restarts.crash_loop_exits,
                      .backoff_initial = job.restarts.backoff_initial,
                      .backoff_max = job.restarts.backoff_max};
  options.drain_timeout = job.drain_timeout;
  return options;
}

/// Takes the state directory for the run.
absl::StatusOr<StateLock> TakeStateDirectory(const LoadedJob& job, const StateDirectory& state) {
  MUSTER_RETURN_IF_ERROR(state.Create());
  MUSTER_RETURN_IF_ERROR(MakeWritable(job.spec.snapshot_directory, "spec.snapshots.directory"));
  MUSTER_ASSIGN_OR_RETURN(StateLock lock, StateLock::Acquire(state));
  MUSTER_RETURN_IF_ERROR(state.MakeToken());
  if (job.path != state.job_copy()) {
    MUSTER_FAILPOINT_OR_RETURN("job-copy.before-write");
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(state.job_copy(), job.text));
  }
  MUSTER_FAILPOINT_OR_RETURN("summary.before-delete");
  ::unlink(state.summary().c_str());
  return lock;
}

/// Finds the job's id, and writes the files by which other programs find the run. Requires: the
/// state directory is taken, and signals are blocked, because reading a journal starts threads.
absl::Status Announce(const StateDirectory& state, RunPlan* plan) {
  plan->job_id = JobIdOf(state, fmt::format("{:016x}{:016x}", RandomNumber(), RandomNumber()));
  return state.WriteEndpoint({.master = plan->master_address,
                              .pid = ::getpid(),
                              .run_id = plan->run_id,
                              .job = {plan->job_id, plan->job.name}});
}

/// Lines on stderr about data that take long to read.
ProgressFn ShowReading() {
  return [clock = SystemClock(), last = SystemClock().Now()](const SourceProgress& at) mutable {
    if (clock.Now() - last < std::chrono::seconds(2)) return;
    last = clock.Now();
    fmt::print(stderr, "reading dataset '{}': {} of {} bytes\n", at.dataset, at.bytes_done,
               at.bytes_total);
  };
}

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

sigset_t StopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : kStopSignals) ::sigaddset(&signals, signal);
  return signals;
}

/// While it lives, SIGINT, SIGTERM and SIGHUP end the command at once, because there is nothing to
/// clean up, and reading folders may take long. Later signals wait again.
class EndsAtOnce {
 public:
  EndsAtOnce() {
    for (const int signal : kStopSignals) {
      struct sigaction former{};
      ::sigaction(signal, nullptr, &former);
      if (former.sa_handler != SIG_IGN) ::signal(signal, End);
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
    ::_exit(kExitDrained);
  }
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

int RunCommand(const RunOptions& options) {
  std::optional<EndsAtOnce> at_once(std::in_place);
  absl::StatusOr<LoadedJob> job = LoadJob(options.job_file, "");
  if (!job.ok()) return PrintError(Message(job.status()), kExitUsage);
  const absl::Status epochs = EpochEndOptionsOf(job->spec).status();
  if (!epochs.ok()) return PrintError(Message(epochs), kExitUsage);
  const std::string self = OwnProgram();
  absl::StatusOr<RunPlan> plan = MakePlan(*job, options, self);
  if (!plan.ok()) return PrintError(Message(plan.status()), kExitUsage);
  if (options.dry_run) {
    const absl::Status usable =
        CheckDirectories(*job, options.progress ? ShowReading() : ProgressFn());
    if (!usable.ok()) return PrintError(Message(usable), kExitUsage);
    const absl::StatusOr<std::vector<SourceLook>> looks = LookAtSources(job->spec);
    if (!looks.ok()) return PrintError(Message(looks.status()), kExitUsage);
    const SourceFindings findings = JudgeLooks(*looks);
    for (const std::string& note : findings.notes) PrintNote(note);
    for (const std::string& wrong : findings.errors) PrintNote(wrong);
    if (!findings.errors.empty()) return kExitUsage;
    PrintData(options.output == OutputFormat::kJson ? PlanToJson(*plan) : DescribePlan(*plan));
    return kExitSucceeded;
  }
  at_once.reset();
  const StateDirectory state(job->spec.state_directory);
  const absl::StatusOr<StateLock> lock = TakeStateDirectory(*job, state);
  if (!lock.ok()) return PrintError(Message(lock.status()), kExitUsage);
  const int signal_fd = BlockSignals();
  absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  absl::Cleanup remove_endpoint = [&state] { state.RemoveEndpoint(); };
  const absl::Status announced = Announce(state, &*plan);
  if (!announced.ok()) return PrintError(Message(announced), kExitUsage);

  SystemClock clock;
  SummaryInput summary;
  {
    JobRunner runner({.plan = *plan,
                      .supervisor = ToSupervisorOptions(job->spec),
                      .program = self,
                      .progress = options.progress ? ProgressDisplay::ModeOf(STDERR_FILENO)
                                                   : ProgressDisplay::Mode::kOff,
                      .progress_fd = STDERR_FILENO,
                      .signal_fd = signal_fd,
                      .lock_fd = lock->fd()},
                     &clock);
    summary = runner.Run();
  }
  const nlohmann::json json = SummaryToJson(summary);
  absl::Status written = MUSTER_FAILPOINT_STATUS("summary.before-write");
  if (written.ok()) written = WriteFileAtomically(state.summary(), json.dump(2) + "\n");
  MUSTER_FAILPOINT("summary.after-write");
  if (!written.ok()) PrintError(Message(written), kExitFailed);
  PrintData(options.output == OutputFormat::kJson ? json.dump(2) + "\n" : SummaryText(summary));
  return ExitCode(summary.outcome.state);
}

}  // namespace muster
