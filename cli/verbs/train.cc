#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/status.h"
#include "cli/run/pod_environment.h"
#include "cli/run/train_job.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"
#include "job/file/load_job.h"

namespace muster {
namespace {

constexpr char kPythonVariable[] = "MUSTER_PYTHON";

struct TrainOptions {
  RunOptions run;
  TrainJob job;
  std::string python;
  bool print_job = false;
};

void AddData(CLI::App* verb, const std::string& name, const std::string& what, TrainData* data) {
  verb->add_option("--" + name, data->files, what + ": glob patterns of files, a record a line");
  verb->add_option("--" + name + "-records", data->records,
                   "The same as a number of records, without files: Minibatch::record_numbers()");
}

/// The program of a trainer in Python. In a cluster, that is the image's.
std::string PythonFor(const TrainOptions& options) {
  if (!options.python.empty()) return options.python;
  const std::string given = ReadEnvironment(kPythonVariable).value_or("");
  return given.empty() || options.run.cluster.is_set() ? "python3" : given;
}

/// The job file, if it is a good one.
absl::StatusOr<std::string> MakeJobFile(const TrainOptions& options) {
  TrainJob job = options.job;
  job.python = PythonFor(options);
  const bool elsewhere = options.run.cluster.is_set();
  if (elsewhere && !job.trainer.starts_with('/')) {
    return absl::InvalidArgumentError(fmt::format(
        "with --on, the trainer is in the image: name its absolute path there, not '{}'",
        job.trainer));
  }
  if (!elsewhere && ::access(job.trainer.c_str(), R_OK) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot read the trainer {}", job.trainer));
  }
  // A name without a slash would be looked up in PATH.
  if (job.trainer.find('/') == std::string::npos) job.trainer = "./" + job.trainer;
  MUSTER_ASSIGN_OR_RETURN(const std::string text, JobFileOf(job));
  MUSTER_RETURN_IF_ERROR(ReadJob(text, options.run.job_file, "/").status());
  return text;
}

int Train(const TrainOptions& options, const Command<RunOptions>& command) {
  const absl::StatusOr<std::string> text = MakeJobFile(options);
  if (!text.ok()) return PrintError(Message(text.status()), kExitUsage);
  if (options.print_job) {
    PrintData(*text);
    return kExitSucceeded;
  }
  RunOptions run = options.run;
  run.job_text = *text;
  return RunHereOrThere(run, command);
}

}  // namespace

void AddTrain(CLI::App* app, Chosen* chosen, Command<RunOptions> command) {
  const auto options = std::make_shared<TrainOptions>();
  options->run.job_file = "the job of muster train";
  TrainJob* const job = &options->job;
  CLI::App* verb =
      app->add_subcommand("train", "Make a job from a trainer and its data, and run it");
  verb->add_option("trainer", job->trainer, "Trainer: a program, or a file of Python (.py)")
      ->required();
  verb->add_option("arguments", job->arguments, "After --: the trainer's arguments");
  AddData(verb, "data", "Data to train on", &job->train);
  AddData(verb, "test", "Data to evaluate after every epoch", &job->test);
  verb->add_flag("--header", job->header, "The first line of each file is no record");
  verb->add_option("--epochs", job->epochs, "How often the data is read (1)");
  verb->add_option("--minibatch-size", job->minibatch_size, "Records per minibatch (256)");
  verb->add_option("--shuffle", job->shuffle, "true (the default), false or shards")
      ->check(CLI::IsMember({"true", "false", "shards"}));
  verb->add_option("--workers", job->workers, "Worker processes (1)");
  verb->add_option("--servers", job->servers, "Parameter servers (1)");
  verb->add_option("--name", job->name, "The job's name (the trainer's)");
  verb->add_option("--state-dir", job->state_directory,
                   "Folder for the job's state and logs (state)");
  verb->add_option("--python", options->python,
                   "The Python of a trainer in Python ($MUSTER_PYTHON, else python3)");
  verb->add_flag("--print-job", options->print_job, "Print the job file, and start nothing");
  AddRunOptions(verb, &options->run);
  verb->footer(
      std::string(
          "Examples:\n"
          "  muster train trainer.py --data 'train-*.csv' --test test.csv --epochs 3 --workers 2\n"
          "  muster train ./trainer --data-records 1000000 -- --learning-rate 0.1\n"
          "  muster train trainer.py --data 'train-*.csv' --print-job > job.yaml\n"
          "  muster train /app/trainer.py --data '/data/*.csv' --on kubernetes --image app:1\n"
          "All else of a job is in its file: print it, change it, and `muster run` it.\n"
          "Other verbs find the job by --state-dir state.\n") +
      kRunEnds);
  verb->callback(
      [=, command = std::move(command)] { *chosen = [=] { return Train(*options, command); }; });
}

}  // namespace muster
