#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <set>
#include <string>

#include "base/crash/crash_stack.h"
#include "base/failpoint.h"
#include "base/status.h"
#include "base/version.h"
#include "cli/reference/named_verb.h"
#include "cli/run/run_command.h"
#include "cli/show/output.h"
#include "cli/verbs/verbs.h"
#include "host/processes/spawn.h"
#include "host/processes/supervise.h"

namespace muster {
namespace {

/// These verbs write the state directory, which only its owner may read. What other verbs write,
/// the user may share.
const std::set<std::string> kPrivateVerbs = {"evaluate", "join",   "master",    "predict", "ps",
                                             "run",      "scaler", "supervise", "train"};
/// They end in a run of this process.
const std::set<std::string> kRuns = {"evaluate", "predict", "run", "train"};

int Main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  // `muster node` may be process 1 of its pod, and the kernel drops signals that process 1 does not
  // handle. Held signals wait until the node's supervision reads them.
  if (kRuns.contains(verb) || verb == "verify" || verb == "node") HoldSignals();
  if (kPrivateVerbs.contains(verb)) KeepFilesPrivate();
  // This is the supervising process of a node, and no verb for people. The option parser must not
  // see it, because it would read the node's own arguments.
  if (verb == "supervise") {
    absl::StatusOr<SuperviseOptions> options = ParseSuperviseArguments({argv + 2, argv + argc});
    if (!options.ok()) return PrintError(Message(options.status()), kExitUsage);
    return ExitCodeOf(Supervise(*options));
  }
  // Supervising processes skip this, because failpoints are for nodes and verbs.
  if (const absl::Status armed = ArmFailpointsFromEnvironment(); !armed.ok()) {
    return PrintError(Message(armed), kExitUsage);
  }
  PrintStackOfCrash();
  CLI::App app("Muster: elastic training with exactly-once data", "muster");
  app.set_version_flag("--version", std::string("muster ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "`muster VERB --help` shows examples. docs/cli.md has every verb, shape and exit code.\n"
      "`muster master`, `muster ps` and `muster scaler` run one node by hand; `muster run` starts "
      "them.");
  Chosen chosen;
  AddVerbs(&app, &chosen);
  if (verb.empty()) {
    PrintData(app.help());
    return kExitUsage;
  }
  if (const absl::Status known = CheckVerb(app, verb); !known.ok()) return PrintError(known);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here, too. They have exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    return PrintError(UsageMessage(verb, error.what()), kExitUsage);
  }
  return chosen();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  // If the process was started from an image (ImageOf), its name would be "exe". `muster list` and
  // people look for "muster".
  ::prctl(PR_SET_NAME, "muster");
  return muster::Main(argc, argv);
}
