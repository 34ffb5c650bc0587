#include "cli/cluster/cluster_export.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddExport(CLI::App* app, Chosen* chosen, Command<ExportCommandOptions> command) {
  const auto options = std::make_shared<ExportCommandOptions>();
  CLI::App* verb =
      app->add_subcommand("export", "Write every table as NumPy files, during or after the run");
  AddQuestion(verb, &options->query);
  verb->add_option("--output-dir", options->output_directory,
                   "A folder that does not exist yet, or is empty; or s3://bucket/prefix")
      ->required();
  verb->add_option("--epoch", options->epoch,
                   "The weights kept of an epoch: `best`, or its number from 1 "
                   "(spec.training.keep). Default: the newest weights");
  verb->footer("Example:\n  muster export job.yaml --output-dir weights   # docs/export.md");
  verb->callback([=, command = std::move(command)] {
    *chosen = [=] {
      const bool is_away = options->query.target.cluster.is_set();
      return is_away ? cluster::ExportOnCluster(*options) : command(*options);
    };
  });
}

}  // namespace muster
