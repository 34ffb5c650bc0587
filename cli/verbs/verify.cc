#include <fmt/format.h>

#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddVerify(CLI::App* app, Chosen* chosen, Command<verify::VerifyOptions> command) {
  using verify::VerifyOptions;
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* verb = app->add_subcommand(
      "verify", "Prove on this machine that kills and pauses lose nothing and double nothing");
  const auto number = [verb](const std::string& name, uint32_t* value, uint32_t low, uint32_t high,
                             const std::string& meaning) {
    verb->add_option(name, *value, fmt::format("{} ({})", meaning, *value))
        ->check(CLI::Range(low, high));
  };
  number("--kills", &options->kills, 0, VerifyOptions::kKillsMax,
         "How many SIGKILLs, over all roles");
  number("--pauses", &options->pauses, 0, VerifyOptions::kPausesMax,
         "How many pauses (SIGSTOP, then SIGCONT after more than a lease)");
  verb->add_option("--seed", options->seed,
                   "Seed of the plan of faults; without it, a seed is chosen and shown");
  verb->add_option("--workers", options->workers, "Workers (2; 3 with --group)")
      ->check(CLI::Range(1U, VerifyOptions::kNodesMax));
  number("--servers", &options->servers, 1, VerifyOptions::kNodesMax, "Parameter servers");
  number("--partitions", &options->partitions, 1, VerifyOptions::kPartitionsMax, "Partitions");
  verb->add_flag_callback(
          "--group", [options] { options->kind = verify::JobKind::kGroup; },
          "Prove it of a synchronous group: kill and pause its members and the master")
      ->excludes("--servers", "--partitions");
  verb->add_option("--directory", options->directory,
                   "Create the job's folder here (in the folder for temporary files)");
  verb->add_flag("--keep", options->keep, "Keep that folder; otherwise only a failure keeps it");
  verb->add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "Show no progress on stderr");
  verb->add_option("--trainer", options->trainer,
                   "The workers' program (the verify_worker that belongs to this program)");
  AddOutput(verb, &options->output);
  AddPlantedBug(verb, &options->planted_bug);
  verb->footer(
      "Examples:\n"
      "  muster verify                               # 12 kills, 3 pauses: half a minute\n"
      "  muster verify --kills 500 --pauses 50       # a soak: about ten minutes\n"
      "  muster verify --group --kills 100           # a synchronous group: three minutes\n"
      "  muster verify --seed 17 --output json | tail -n 1\n"
      "Exit codes: 0 nothing is lost, unexpected, duplicated or wrong, and a group has the\n"
      "weights of a run without faults; 6 something is wrong; 1 the job did not end; 2 bad\n"
      "arguments; 3 stopped by Ctrl-C.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
