#include <filesystem>
#include <string>

#include "base/status.h"
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

/// The job file, if it is a good one.
absl::StatusOr<std::string> MakeJobFile(const DeriveOptions& options, const LoadedJob& training) {
  MUSTER_ASSIGN_OR_RETURN(std::string text,
                          DeriveJob(training.text, options.run.job_file, options.derived));
  MUSTER_RETURN_IF_ERROR(ReadJob(text, options.run.job_file, training.base_directory).status());
  return text;
}

int Derive(DeriveOptions options, const Command<RunOptions>& command) {
  const absl::StatusOr<LoadedJob> training = LoadJob(options.run.job_file, "");
  if (!training.ok()) return PrintError(Message(training.status()), kExitUsage);
  options.derived.weights = std::filesystem::absolute(options.derived.weights).string();
  const absl::StatusOr<std::string> text = MakeJobFile(options, *training);
  if (!text.ok()) return PrintError(Message(text.status()), kExitUsage);
  if (options.print_job) {
    PrintData(*text);
    return kExitSucceeded;
  }
  RunOptions run = options.run;
  run.job_file = fmt::format("{}, as of muster {}", run.job_file, ToString(options.derived.mode));
  run.job_text = *text;
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
                   "Folder that `muster export` wrote; every machine of the job must see it")
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
  AddDerived(app, chosen, std::move(command), DatasetMode::kPredict,
             "Run a job's datasets of mode predict with exported weights, and train nothing",
             "Examples:\n"
             "  muster export job.yaml --output-dir weights\n"
             "  muster predict job.yaml --weights weights\n"
             "  muster predict job.yaml --weights weights --print-job > predict.yaml\n"
             "The outputs appear at `output` of each dataset, a file for each shard.\n");
}

void AddEvaluate(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  AddDerived(app, chosen, std::move(command), DatasetMode::kEvaluate,
             "Run a job's datasets of mode evaluate with exported weights, and train nothing",
             "Examples:\n"
             "  muster evaluate job.yaml --weights weights\n"
             "  muster evaluate job.yaml --weights weights --output json > metrics.json\n"
             "The summary has the metrics.\n");
}

}  // namespace muster
