#include "cli/verify/verify_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/run/run_command.h"
#include "cli/verify/evidence.h"
#include "cli/verify/group_evidence.h"
#include "cli/verify/histories.h"
#include "cli/verify/report.h"
#include "cli/verify/storm.h"
#include "cli/verify/verify_job.h"
#include "host/processes/spawn.h"
#include "proto/fields/json.h"

namespace muster::verify {
namespace {

constexpr char kWorker[] = "verify_worker";
/// The folder of the run without faults. It is inside the job's folder.
constexpr char kUndisturbed[] = "undisturbed";

absl::StatusOr<std::string> TrainerOf(const VerifyOptions& options, const std::string& program) {
  if (options.trainer.empty()) return FindWorker(WorkerPlaces(program));
  return FindWorker({std::filesystem::absolute(options.trainer).lexically_normal().string()});
}

std::string DirectoryOf(const VerifyOptions& options) {
  return options.directory.empty() ? TemporaryFolder() : options.directory;
}

/// Seeds are short, so that a person can write them down.
uint64_t SeedOf(const VerifyOptions& options, const Clock& clock) {
  return options.seed.value_or(static_cast<uint64_t>(clock.Wall().count()) % 1'000'000);
}

FaultPlan::Options PlanOf(const VerifyOptions& options, uint64_t seed) {
  FaultPlan::Options plan{
      .seed = seed, .kills = options.kills, .pauses = options.pauses, .lease = VerifyJob::kLease};
  if (options.kind == JobKind::kGroup) {
    // Servers and the scaler take no part in the steps.
    plan.roles = {Role::kWorker, Role::kWorker, Role::kMaster};
    plan.aim = FaultPlan::Options::Aim::kBursts;
  }
  return plan;
}

Storm::Options StormOptions(const VerifyOptions& options, NodePrograms programs, uint64_t seed) {
  Storm::Options storm{.programs = std::move(programs),
                       .plan = PlanOf(options, seed),
                       .run_flags = {},
                       .say = [](const std::string&) {}};
  if (!options.planted_bug.empty()) storm.run_flags = {"--planted-bug", options.planted_bug};
  if (options.progress) {
    storm.say = [](const std::string& line) { PrintNote(line); };
  }
  return storm;
}

int ExitCodeOf(const Report& report) {
  if (report.storm.interrupted) return kExitDrained;
  if (!report.judgement.has_value()) return kExitFailed;
  return report.judgement->ok() ? kExitSucceeded : kExitWrong;
}

/// Runs a job. If it does not reach its end, the report gets the problem.
void RunOne(Storm::Options options, VerifyJob* job, const Clock* clock, Report* report) {
  Storm storm(std::move(options), job, clock);
  report->storm = storm.Run();
  report->problem = report->storm.problem;
}

void KeepJudgement(absl::StatusOr<Judgement> judgement, Report* report) {
  if (judgement.ok()) {
    report->judgement = *std::move(judgement);
  } else {
    report->problem = Message(judgement.status());
  }
}

/// Runs the storm and judges its results. Fills in all of the report except the folder.
void RunAndJudge(Storm::Options options, VerifyJob* job, const Clock* clock, Report* report) {
  RunOne(std::move(options), job, clock, report);
  if (!report->problem.empty()) return;
  KeepJudgement(Judge(*job, report->storm, job->options().workers), report);
}

/// The same for a group. It begins with a run without faults.
void RunAndJudgeGroup(Storm::Options options, VerifyJob* job, const Clock* clock, Report* report) {
  absl::StatusOr<VerifyJob> twin = job->CreateTwin(kUndisturbed);
  if (!twin.ok()) {
    report->problem = Message(twin.status());
    return;
  }
  options.say("first, the same job without faults");
  Storm::Options quiet = options;
  quiet.plan.kills = 0;
  quiet.plan.pauses = 0;
  RunOne(std::move(quiet), &*twin, clock, report);
  if (!report->problem.empty()) {
    report->problem = fmt::format("in the run without faults: {}", report->problem);
    return;
  }
  options.say("now with faults");
  GroupWatch watch(job->histories(), job->options().workers);
  options.recovered = [&watch] { return watch.IsWhole(); };
  RunOne(std::move(options), job, clock, report);
  if (!report->problem.empty()) return;
  KeepJudgement(JudgeGroup(*twin, *job, report->storm), report);
}

}  // namespace

uint32_t WorkersOf(const VerifyOptions& options) {
  return options.workers.value_or(options.kind == JobKind::kGroup ? 3 : 2);
}

absl::Status CheckOptions(const VerifyOptions& options) {
  if (options.partitions < options.servers) {
    return absl::InvalidArgumentError(
        fmt::format("--partitions {} is less than --servers {}: every server needs one",
                    options.partitions, options.servers));
  }
  return absl::OkStatus();
}

std::vector<std::string> WorkerPlaces(const std::string& program) {
  const std::filesystem::path folder = std::filesystem::path(program).parent_path();
  return {(folder / kWorker).string(),
          (folder.parent_path() / "libexec" / "muster" / kWorker).string()};
}

absl::StatusOr<std::string> FindWorker(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    std::error_code error;
    if (std::filesystem::is_regular_file(place, error) && ::access(place.c_str(), X_OK) == 0) {
      return place;
    }
  }
  return absl::NotFoundError(
      fmt::format("there is no program to train with: looked for {}; build or install it, or name "
                  "it with --trainer",
                  fmt::join(places, " and ")));
}

int VerifyCommand(const VerifyOptions& options) {
  if (const absl::Status right = CheckOptions(options); !right.ok()) return PrintError(right);
  const std::string program = OwnProgram();
  absl::StatusOr<std::string> trainer = TrainerOf(options, program);
  if (!trainer.ok()) return PrintError(Message(trainer.status()), kExitUsage);

  SystemClock clock;
  // From here on, Ctrl-C is handled and cleans up.
  const int signal_fd = BlockSignals();
  absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  Report report{.seed = SeedOf(options, clock)};
  absl::StatusOr<VerifyJob> job = VerifyJob::Create({.kind = options.kind,
                                                     .directory = DirectoryOf(options),
                                                     .seed = report.seed,
                                                     .workers = WorkersOf(options),
                                                     .servers = options.servers,
                                                     .partitions = options.partitions,
                                                     .faults = options.kills + options.pauses,
                                                     .trainer = *trainer});
  if (!job.ok()) return PrintError(Message(job.status()), kExitUsage);
  report.workload = job->workload();
  Storm::Options storm_options =
      StormOptions(options, {.muster = program, .trainer = *trainer}, report.seed);
  storm_options.signal_fd = signal_fd;
  const auto run = options.kind == JobKind::kGroup ? RunAndJudgeGroup : RunAndJudge;
  run(std::move(storm_options), &*job, &clock, &report);

  const int exit_code = ExitCodeOf(report);
  if (options.keep || (exit_code != kExitSucceeded && exit_code != kExitDrained)) {
    job->Keep();
    report.directory = job->folder();
  }
  PrintData(options.output == OutputFormat::kJson ? JsonText(ReportToJson(report)) + "\n"
                                                  : ReportText(report));
  return exit_code;
}

}  // namespace muster::verify
