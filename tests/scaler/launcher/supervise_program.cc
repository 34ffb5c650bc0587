#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "scaler/launcher/process_launcher.h"
#include "scaler/launcher/supervise.h"

/// `supervise_program supervise ARGUMENTS...`: the verb of the muster executable.
/// `supervise_program launch LOG_FOLDER COMMAND...`: a stand-in for `muster run` that the tests can
/// kill: starts one node, prints its pid, and waits for ever.
int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  if (std::string(argv[1]) == "supervise") {
    absl::StatusOr<muster::SuperviseOptions> options = muster::ParseSuperviseArguments(arguments);
    if (!options.ok()) {
      fmt::print(stderr, "{}\n", muster::Message(options.status()));
      return 2;
    }
    return muster::RunSupervise(*options);
  }
  muster::ProcessLauncher launcher({.program = "/proc/self/exe", .log_directory = arguments[0]});
  absl::Status started = launcher.Start({.name = "node",
                                         .command = {arguments.begin() + 1, arguments.end()},
                                         .environment = {},
                                         .working_directory = ""});
  if (!started.ok()) return 1;
  while (true) {
    for (const muster::ProcessReport& report : launcher.Wait(std::chrono::hours(1), {})) {
      fmt::print("{}\n", report.pid);
      std::fflush(stdout);
    }
  }
}
