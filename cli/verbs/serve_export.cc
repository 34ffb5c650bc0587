#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddServeExport(CLI::App* app, Chosen* chosen, Command<ServeExportOptions> command) {
  const auto options = std::make_shared<ServeExportOptions>();
  CLI::App* verb = app->add_subcommand(
      "serve-export", "Make an export and hand it out once, as the entry point of a pod");
  verb->group("");  // not listed
  verb->add_option("--job", options->job_file, "Job file (/etc/muster/job/job.yaml)");
  verb->add_option("--state-dir", options->state_directory,
                   "The job's state directory (below /var/lib/muster)");
  verb->add_option("--token", options->token_file,
                   "File with the job's token (/etc/muster/token/token)");
  verb->add_option("--folder", options->folder, "Folder for the export (/var/lib/muster-export)");
  verb->add_option("--port", options->port, "Port of 127.0.0.1 (7173)");
  verb->footer(
      "Example:\n  muster serve-export\n"
      "`muster export --on kubernetes` makes a pod that runs it.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
