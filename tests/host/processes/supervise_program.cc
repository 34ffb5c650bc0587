#include <fmt/core.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/processes/node_launcher.h"
#include "host/processes/supervise.h"

namespace {

constexpr char kSelf[] = "/proc/self/exe";

int Supervise(const std::vector<std::string>& arguments) {
  absl::StatusOr<muster::SuperviseOptions> options = muster::ParseSuperviseArguments(arguments);
  if (!options.ok()) {
    fmt::print(stderr, "{}\n", muster::Message(options.status()));
    return 2;
  }
  return muster::ExitCodeOf(muster::Supervise(*options));
}

int Launch(const std::vector<std::string>& arguments) {
  muster::NodeLauncher launcher({.program = kSelf, .log_directory = arguments[0]});
  absl::Status started = launcher.Start(
      {.name = "node", .command = {arguments.begin() + 1, arguments.end()}, .environment = {}});
  if (!started.ok()) return 1;
  while (true) {
    for (const muster::LaunchReport& report : launcher.Wait(std::chrono::hours(1), {})) {
      std::visit([](const auto& event) { fmt::print("{}\n", event.pid); }, report);
      std::fflush(stdout);
    }
  }
}

int Keep(const std::vector<std::string>& arguments) {
  absl::StatusOr<muster::NodeSockets> sockets = muster::NodeSockets::Open(arguments[2]);
  if (!sockets.ok()) return 1;
  muster::NodeLauncher launcher(
      {.program = kSelf, .log_directory = arguments[1], .life_fd = std::atoi(arguments[0].c_str())},
      *std::move(sockets));
  if (!launcher.Find().ok()) return 1;
  const muster::NodeCommand command{
      .name = "node", .command = {arguments.begin() + 3, arguments.end()}, .environment = {}};
  if (!launcher.Has("node") && !launcher.Start(command, {.start = 1}).ok()) return 1;
  while (true) launcher.Wait(std::chrono::hours(1), {});
}

}  // namespace

/// `supervise_program supervise ARGUMENTS...`: the verb of the muster executable.
/// `supervise_program launch LOG_FOLDER COMMAND...`: a stand-in for `muster run` that the tests can
/// kill: starts one process, prints its pid, and waits without end.
/// `supervise_program keep LIFE_FD LOG_FOLDER SOCKET_FOLDER COMMAND...`: the same for `muster
/// scaler`: starts one node, or adopts it.
int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  // For the supervised command: here the supervising process lacks them.
  if (const char* most = std::getenv("MUSTER_ADDED_DESCRIPTORS_MAX"); most != nullptr) {
    const rlimit limit{std::strtoul(most, nullptr, 10), std::strtoul(most, nullptr, 10)};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  }
  if (verb == "supervise") return Supervise(arguments);
  return verb == "keep" ? Keep(arguments) : Launch(arguments);
}
