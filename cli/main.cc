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

/// They write the state directory. What other verbs write is for the user to share.
const std::set<std::string> kPrivateVerbs = {"join", "master", "ps", "run", "scaler", "supervise"};

int Main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  // `muster node` is process 1 of its pod: the kernel drops signals that it does not handle, and
  // its supervision reads those that wait.
  if (verb == "run" || verb == "verify" || verb == "node") HoldSignals();
  if (kPrivateVerbs.contains(verb)) KeepFilesPrivate();
  // Not a verb for people: the supervising process of each node. The option parser does not see it,
  // because it would read the node's own arguments.
  if (verb == "supervise") {
    absl::StatusOr<SuperviseOptions> options = ParseSuperviseArguments({argv + 2, argv + argc});
    if (!options.ok()) return PrintError(Message(options.status()), kExitUsage);
    return ExitCodeOf(Supervise(*options));
  }
  // Not for a supervising process, because failpoints are for nodes and verbs.
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
    // --help and --version arrive here, too, with exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    return PrintError(UsageMessage(verb, error.what()), kExitUsage);
  }
  return chosen();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  // Started from an image (ImageOf), it would be called "exe"; `muster list` and people look for
  // this name.
  ::prctl(PR_SET_NAME, "muster");
  return muster::Main(argc, argv);
}
