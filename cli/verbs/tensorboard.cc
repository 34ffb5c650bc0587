#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddTensorboard(CLI::App* app, Chosen* chosen, Command<metrics::TensorboardOptions> command) {
  const auto options = std::make_shared<metrics::TensorboardOptions>();
  CLI::App* verb = app->add_subcommand(
      "tensorboard", "Write metrics and rates as TensorBoard event files, during or after the run");
  AddTarget(verb, &options->query);
  verb->add_option("--log-dir", options->log_directory,
                   "The folder for the files; points that it already has are not written again")
      ->required();
  verb->add_flag("-f,--follow", options->follow,
                 "Add each epoch when it is committed, until the run is over");
  verb->footer(
      "Examples:\n"
      "  muster tensorboard job.yaml --log-dir logs            # then: tensorboard --logdir logs\n"
      "  muster tensorboard job.yaml --log-dir logs --follow   # while the job runs\n"
      "Each dataset is a run of TensorBoard. Steps are epochs from 1; steps of rates are records.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
