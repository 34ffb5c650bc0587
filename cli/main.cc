#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/failpoint.h"
#include "base/status.h"
#include "base/version.h"
#include "cli/node_commands.h"
#include "cli/output.h"
#include "cli/query_commands.h"
#include "cli/run_command.h"
#include "cli/steer/order_commands.h"
#include "cli/verbs/simulate_verb.h"
#include "cli/verbs/steer_verbs.h"
#include "cli/verbs/verb_options.h"
#include "cli/verify/verify_command.h"
#include "scaler/launcher/supervise.h"

namespace muster {
namespace {

/// The options of all verbs, and what the chosen one returned.
struct Verbs {
  RunOptions run;
  MasterCommandOptions master;
  ServerCommandOptions server;
  ScalerCommandOptions scaler;
  QueryOptions status;
  QueryOptions nodes;
  ShardsOptions shards;
  LogsOptions logs;
  PartitionsOptions partitions;
  steer::RetryOptions retry;
  SteerVerbs steer;
  simulate::SimulateOptions simulate;
  ExportCommandOptions export_options;
  verify::VerifyOptions verify;
  int exit_code = kExitSucceeded;
};

/// Hidden: for tests of the checks. Refused with a reason by a build that has no such bugs.
void AddPlantedBug(CLI::App* verb, std::string* name) {
  verb->add_option("--planted-bug", *name)->group("")->check([](const std::string& text) {
    const absl::Status known = ParsePlantedBug(text).status();
    return std::string(known.ok() ? "" : Message(known));
  });
}

void AddRun(CLI::App* app, Verbs* verbs) {
  CLI::App* verb = app->add_subcommand("run", "Run a job on this machine, or resume it");
  RunOptions* options = &verbs->run;
  verb->add_option("job", options->job_file, "Job file (docs/job-file.md)")->required();
  verb->add_flag("--dry-run", options->dry_run, "Check everything, print the plan, start nothing");
  verb->add_flag("--retry-failed", options->retry_failed, "Try FAILED shards again");
  verb->add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "No progress on stderr");
  AddOutput(verb, &options->output);
  AddPlantedBug(verb, &options->planted_bug);
  verb->add_option("--node-program", options->node_program)->group("");
  verb->footer(
      "Examples:\n"
      "  muster run job.yaml                 # Ctrl-C drains, twice stops at once; run again "
      "resumes\n"
      "  muster run job.yaml --dry-run\n"
      "  muster run job.yaml --output json --no-progress > summary.json\n"
      "Exit codes: 0 succeeded, 1 failed, 2 bad arguments, job file or data, 3 drained or "
      "stopped,\n"
      "4 cancelled, 7 snapshots cannot be read.");
  verb->callback([verbs] { verbs->exit_code = RunCommand(verbs->run); });
}

void AddNodes(CLI::App* app, Verbs* verbs) {
  CLI::App* master =
      app->add_subcommand("master", "Run a master (muster run does; for containers by hand)");
  master->add_option("--job", verbs->master.job_file, "Job file")->required();
  master->add_option("--base-directory", verbs->master.base_directory,
                     "Where relative paths of the job file begin; its own folder if absent");
  master->add_option("--listen", verbs->master.listen_address, "127.0.0.1:PORT")->required();
  master
      ->add_option("--run-id", verbs->master.run_id,
                   "Names this run; a new one means that all processes of older runs are dead")
      ->required();
  master->add_option("--job-id", verbs->master.job_id,
                     "Of the job, drawn when it begins; the journal has it, too");
  master->add_flag("--retry-failed", verbs->master.retry_failed, "Try FAILED shards again");
  AddPlantedBug(master, &verbs->master.planted_bug);
  master->footer("Example:\n  muster master --job job.yaml --listen 127.0.0.1:20123 --run-id one");
  master->callback([verbs] { verbs->exit_code = MasterCommand(verbs->master); });

  CLI::App* server =
      app->add_subcommand("ps", "Run a parameter server (muster run does; for containers by hand)");
  server->add_option("--name", verbs->server.name, "ps-0, ps-1, ...")->required();
  server
      ->add_option("--start", verbs->server.start,
                   "The start number of this process: 1 for the first of this name in the run. The "
                   "master refuses a process that is older than the newest. 0: not known (0)")
      ->envname("MUSTER_START");
  server->add_option("--master", verbs->server.master_address, "127.0.0.1:PORT")->required();
  server->add_option("--socket-directory", verbs->server.socket_directory,
                     "Folder for UNIX sockets; TCP only if absent");
  server->add_option("--job-id", verbs->server.job_id,
                     "Of the job: masters of other jobs are not spoken with");
  server
      ->add_option("--threads", verbs->server.threads, "Threads, each with its own partitions (1)")
      ->check(CLI::Range(1, 256));
  server
      ->add_option("--drain-timeout", verbs->server.drain_timeout_s,
                   "Seconds that it waits for its snapshots when it gets SIGTERM (8)")
      ->check(CLI::Range(1, 86'400));
  server->footer("Example:\n  muster ps --name ps-0 --master 127.0.0.1:20123");
  server->callback([verbs] { verbs->exit_code = ServerCommand(verbs->server); });
}

void AddScaler(CLI::App* app, Verbs* verbs) {
  CLI::App* verb = app->add_subcommand(
      "scaler", "Run a scaler, which starts and watches workers and servers (muster run does)");
  ScalerCommandOptions* options = &verbs->scaler;
  verb->add_option("--job", options->job_file, "Job file")->required();
  verb->add_option("--base-directory", options->base_directory,
                   "Where relative paths of the job file begin; its own folder if absent");
  verb->add_option("--master", options->master_address, "127.0.0.1:PORT")->required();
  verb->add_option("--run-id", options->run_id,
                   "Of the run, as the master has it; nodes of the same run are adopted")
      ->required();
  verb->add_option("--job-id", options->job_id,
                   "Of the job: masters of other jobs are not spoken with");
  verb->add_option("--trainer", options->trainer, "The workers' program, absolute")->required();
  verb->add_option("--node-program", options->node_program)->group("");
  verb->add_option("--life-fd", options->life_fd)->group("");
  verb->add_option("--rest-port", options->rest_port,
                   "Port of 127.0.0.1 for REST and the dashboard (a free one)");
  verb->add_option("--held-fd", options->held_fd)->group("");
  verb->add_option("--beat-fd", options->beat_fd)->group("");
  verb->footer(
      "Example:\n  muster scaler --job job.yaml --master 127.0.0.1:20123 --run-id one --trainer "
      "$PWD/trainer\nNodes outlive it when it is killed; SIGTERM ends them, and it.");
  verb->callback([verbs] { verbs->exit_code = ScalerCommand(verbs->scaler); });
}

void AddShards(CLI::App* app, Verbs* verbs) {
  CLI::App* verb =
      app->add_subcommand("shards", "Shards that are in work, done but not committed, or failed");
  ShardsOptions* options = &verbs->shards;
  AddTarget(verb, &options->query);
  verb->add_option("--state", options->state, "Only these: leased, done or failed")
      ->check(CLI::IsMember({"leased", "done", "failed"}));
  verb->add_option("--limit", options->limit, "At most so many (1000)")
      ->check(CLI::Range(1, 10'000));
  verb->add_option("--offset", options->offset, "Leave out the first so many");
  CLI::Option* retry =
      verb->add_option("--retry", verbs->retry.ids,
                       "Try FAILED shards again: those named as `muster shards` shows them, or all")
          ->expected(0, 1'000'000);
  verb->footer(
      "Examples:\n"
      "  muster shards job.yaml --state failed\n"
      "  muster shards job.yaml --retry\n"
      "  muster shards job.yaml --retry 0/1/17 0/1/18");
  verb->callback([verbs, retry] {
    std::erase_if(verbs->retry.ids, [](const std::string& id) { return id.empty() || id == "{}"; });
    verbs->retry.query = verbs->shards.query;
    verbs->exit_code =
        retry->count() > 0 ? steer::RetryCommand(verbs->retry) : ShardsCommand(verbs->shards);
  });
}

void AddLogs(CLI::App* app, Verbs* verbs) {
  CLI::App* logs = app->add_subcommand("logs", "Output of a node, also after the run");
  AddNodeAndJob(logs, &verbs->logs.node, &verbs->logs.query, "master, ps-0, worker-1, ...");
  AddOutput(logs, &verbs->logs.query.output);
  logs->add_option("-n,--lines", verbs->logs.lines, "Lines from the end (100)");
  logs->add_flag("-f,--follow", verbs->logs.follow, "Go on until the run ends");
  logs->footer(
      "Examples:\n  muster logs job.yaml worker-0\n  muster logs job.yaml master -n 20 -f");
  logs->callback([verbs] { verbs->exit_code = LogsCommand(verbs->logs); });
}

void AddQueries(CLI::App* app, Verbs* verbs) {
  CLI::App* status =
      app->add_subcommand("status", "Progress, nodes and counters, also after the run");
  AddTarget(status, &verbs->status);
  status->footer(
      "Examples:\n  muster status job.yaml\n  muster status --state-dir state --output json");
  status->callback([verbs] { verbs->exit_code = StatusCommand(verbs->status); });

  CLI::App* nodes = app->add_subcommand("nodes", "The processes of a job, also after the run");
  AddTarget(nodes, &verbs->nodes);
  nodes->footer("Example:\n  muster nodes job.yaml --output json");
  nodes->callback([verbs] { verbs->exit_code = NodesCommand(verbs->nodes); });

  CLI::App* partitions = app->add_subcommand(
      "partitions", "The weights' partitions: owner, snapshot, traffic, also after the run");
  AddTarget(partitions, &verbs->partitions.query);
  partitions->add_option("--limit", verbs->partitions.limit, "At most so many (1000)")
      ->check(CLI::Range(1, 10'000));
  partitions->add_option("--offset", verbs->partitions.offset, "Leave out the first so many");
  partitions->footer("Example:\n  muster partitions job.yaml --output json");
  partitions->callback([verbs] { verbs->exit_code = PartitionsCommand(verbs->partitions); });

  CLI::App* exporting =
      app->add_subcommand("export", "Write every table as NumPy files, also after the run");
  AddTarget(exporting, &verbs->export_options.query);
  exporting
      ->add_option("--output-dir", verbs->export_options.output_directory,
                   "Folder that does not exist yet, or is empty")
      ->required();
  exporting->footer("Example:\n  muster export job.yaml --output-dir weights   # docs/export.md");
  exporting->callback([verbs] { verbs->exit_code = ExportCommand(verbs->export_options); });
}

void AddVerify(CLI::App* app, Verbs* verbs) {
  using verify::VerifyOptions;
  CLI::App* verb = app->add_subcommand(
      "verify", "Prove on this machine that nothing is lost: kill and pause a job's processes");
  VerifyOptions* options = &verbs->verify;
  const auto number = [verb](const std::string& name, uint32_t* value, uint32_t low, uint32_t high,
                             const std::string& meaning) {
    verb->add_option(name, *value, fmt::format("{} ({})", meaning, *value))
        ->check(CLI::Range(low, high));
  };
  number("--kills", &options->kills, 0, VerifyOptions::kKillsMax, "SIGKILLs, over all roles");
  number("--pauses", &options->pauses, 0, VerifyOptions::kPausesMax,
         "SIGSTOPs for longer than the lease, then SIGCONT");
  verb->add_option("--seed", options->seed, "Plans the faults; of the clock, and shown, if absent");
  number("--workers", &options->workers, 1, VerifyOptions::kNodesMax, "Workers");
  number("--servers", &options->servers, 1, VerifyOptions::kNodesMax, "Parameter servers");
  number("--partitions", &options->partitions, 1, VerifyOptions::kPartitionsMax, "Partitions");
  verb->add_option("--directory", options->directory,
                   "Where the job's folder is made (the folder for temporary files)");
  verb->add_flag("--keep", options->keep, "Keep that folder; else it stays after a failure only");
  verb->add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "No progress on stderr");
  verb->add_option("--trainer", options->trainer,
                   "The worker; if absent, the verify_worker that belongs to this program");
  AddOutput(verb, &options->output);
  AddPlantedBug(verb, &options->planted_bug);
  verb->footer(
      "Examples:\n"
      "  muster verify                               # 12 kills, 3 pauses: half a minute\n"
      "  muster verify --kills 500 --pauses 50       # a soak: about ten minutes\n"
      "  muster verify --seed 17 --output json | tail -n 1\n"
      "Exit codes: 0 nothing is lost, unexpected or duplicated, 6 something is, 1 the job did not "
      "come\nto its end, 2 bad arguments, 3 stopped by Ctrl-C.");
  verb->callback([verbs] { verbs->exit_code = verify::VerifyCommand(verbs->verify); });
}

int Main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "run" || verb == "verify") HoldSignals();
  // Not a verb for people: each node's supervising process. Kept out of the option parser, which
  // would look at the node's own arguments.
  if (verb == "supervise") {
    absl::StatusOr<SuperviseOptions> options = ParseSuperviseArguments({argv + 2, argv + argc});
    if (!options.ok()) return PrintError(Message(options.status()), kExitUsage);
    return RunSupervise(*options);
  }
  // Not for a supervising process: failpoints are of the nodes and of those who are asked.
  if (const absl::Status armed = ArmFailpointsFromEnvironment(); !armed.ok()) {
    return PrintError(Message(armed), kExitUsage);
  }
  CLI::App app("Muster: elastic training with exactly-once data", "muster");
  app.set_version_flag("--version", std::string("muster ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "`muster VERB --help` shows examples. docs/cli.md has every verb, shape and exit code.");
  Verbs verbs;
  AddRun(&app, &verbs);
  AddQueries(&app, &verbs);
  AddShards(&app, &verbs);
  AddLogs(&app, &verbs);
  AddSteerVerbs(&app, &verbs.steer);
  AddSimulateVerb(&app, &verbs.simulate, &verbs.exit_code);
  AddScalerVerbs(&app, &verbs.steer);
  AddNodes(&app, &verbs);
  AddScaler(&app, &verbs);
  AddVerify(&app, &verbs);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here, too, with exit code 0.
    return app.exit(error) == 0 ? kExitSucceeded : kExitUsage;
  }
  return verbs.steer.chosen ? verbs.steer.chosen() : verbs.exit_code;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(argc, argv);
}
