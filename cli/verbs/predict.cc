#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/descriptors.h"
#include "base/status.h"
#include "cli/ask/weights_of_job.h"
#include "cli/run/run_command.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"
#include "job/file/derived_job.h"
#include "job/file/load_job.h"

namespace muster {
namespace {

struct DeriveOptions {
  RunOptions run;
  DerivedJob derived;
  bool print_job = false;
};

/// The job, if it is a good one.
absl::StatusOr<LoadedJob> MakeJob(const DeriveOptions& options, const LoadedJob& training) {
  MUSTER_ASSIGN_OR_RETURN(std::string text,
                          DeriveJob(training.text, options.run.job_file, options.derived));
  return ReadJob(std::move(text), options.run.job_file, training.base_directory);
}

/// Calls `work`, which may take long, on a thread of its own. A signal that stops runs ends this
/// process at once, as while RunCommand reads files; and threads that `work` leaves behind take no
/// signals.
void UnlessStopped(const std::function<void()>& work) {
  const OwnedFd signals(BlockSignals());
  const WakeFd done;
  std::thread worker([&] {
    work();
    done.Wake();
  });
  pollfd fds[] = {{signals.get(), POLLIN, 0}, {done.get(), POLLIN, 0}};
  while (::poll(fds, 2, /*timeout=*/-1) < 0) continue;
  if ((fds[0].revents & POLLIN) != 0) {
    PrintNote("stopped before the job was started");
    ::_exit(kExitDrained);
  }
  worker.join();
}

/// Exports the weights of the job `from` to the folder where `job` begins.
absl::Status BringWeights(const JobTarget& from, const LoadedJob& job) {
  const std::string& folder = job.spec.training.warm_start;
  const bool there = std::filesystem::exists(folder);
  MUSTER_RETURN_IF_ERROR(StateDirectory(job.spec.state_directory).Create());
  absl::StatusOr<std::string> position;
  UnlessStopped([&] { position = TakeWeights(from, folder); });
  MUSTER_RETURN_IF_ERROR_PREPEND(position.status(), "--weights");
  PrintNote(fmt::format("the weights are those of {}{}", *position,
                        there ? ", as when this job began" : ""));
  return absl::OkStatus();
}

/// Where the weights of a job are exported to: below the state directory of `job`.
absl::StatusOr<std::string> FolderForWeights(const DeriveOptions& options, const LoadedJob& job) {
  if (!options.run.cluster.is_set()) return job.spec.state_directory + "/weights";
  return absl::InvalidArgumentError(
      fmt::format("--weights: {} is a job, and on a cluster the weights must be an export in a "
                  "folder that its pods see: use `muster export` before, and name its folder",
                  options.derived.weights));
}

/// Says and prints instead of starting the job. Returns the exit code.
int PrintJob(const std::string& text, const std::string& folder) {
  if (!folder.empty()) {
    PrintNote(fmt::format("nothing was exported: the job needs weights in {}", folder));
  }
  PrintData(text);
  return kExitSucceeded;
}

int Derive(DeriveOptions options, const Command<RunOptions>& command) {
  const absl::StatusOr<LoadedJob> training = LoadJob(options.run.job_file, "");
  if (!training.ok()) return PrintError(Message(training.status()), kExitUsage);
  const std::optional<JobTarget> from = JobOfWeights(options.derived.weights);
  options.derived.weights = std::filesystem::absolute(options.derived.weights).string();
  absl::StatusOr<LoadedJob> job = MakeJob(options, *training);
  std::string folder;
  if (job.ok() && from.has_value()) {
    const absl::StatusOr<std::string> own = FolderForWeights(options, *job);
    if (!own.ok()) return PrintError(Message(own.status()), kExitUsage);
    options.derived.weights = folder = *own;
    job = MakeJob(options, *training);
  }
  if (!job.ok()) return PrintError(Message(job.status()), kExitUsage);
  if (options.print_job) return PrintJob(job->text, folder);
  if (from.has_value() && !options.run.dry_run) {
    const absl::Status brought = BringWeights(*from, *job);
    if (!brought.ok()) return PrintError(brought);
  }
  RunOptions run = options.run;
  run.job_file = fmt::format("{}, as of muster {}", run.job_file, ToString(options.derived.mode));
  run.job_text = job->text;
  run.job_folder = training->base_directory;
  return RunHereOrThere(run, command);
}

void AddDerived(CLI::App* app, Chosen* chosen, Command<RunOptions> command, DatasetMode mode,
                const std::string& what, const std::string& examples) {
  const auto options = std::make_shared<DeriveOptions>();
  options->derived.mode = mode;
  CLI::App* verb = app->add_subcommand(ToString(mode), what);
  verb->add_option("job", options->run.job_file, "Job file (docs/job-file.md)")->required();
  verb->add_option("--weights", options->derived.weights,
                   "Folder that `muster export` wrote, which every machine of the job must see; or "
                   "the job file, or the state directory, of a job whose newest weights are taken")
      ->required();
  verb->add_option("--state-dir", options->derived.state_directory,
                   "Folder for the job's state and logs (that of the training, with the verb "
                   "behind it)");
  verb->add_flag("--print-job", options->print_job, "Print the job file, and start nothing");
  AddRunOptions(verb, &options->run);
  verb->footer(examples + kRunEnds);
  verb->callback(
      [=, command = std::move(command)] { *chosen = [=] { return Derive(*options, command); }; });
}

}  // namespace

void AddPredict(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  AddDerived(
      app, chosen, std::move(command), DatasetMode::kPredict,
      "Run a job's datasets of mode predict with the weights of another job, and train "
      "nothing",
      "Examples:\n"
      "  muster predict job.yaml --weights job.yaml        # while it trains, or afterwards\n"
      "  muster export job.yaml --epoch best --output-dir weights\n"
      "  muster predict job.yaml --weights weights\n"
      "  muster predict job.yaml --weights weights --print-job > predict.yaml\n"
      "The outputs appear at `output` of each dataset, a file for each shard.\n");
}

void AddEvaluate(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  AddDerived(app, chosen, std::move(command), DatasetMode::kEvaluate,
             "Run a job's datasets of mode evaluate with the weights of another job, and train "
             "nothing",
             "Examples:\n"
             "  muster evaluate job.yaml --weights job.yaml\n"
             "  muster evaluate job.yaml --weights weights\n"
             "  muster evaluate job.yaml --weights weights --output json > metrics.json\n"
             "The summary has the metrics.\n");
}

}  // namespace muster
