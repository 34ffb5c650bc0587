#include "cli/node/node_exit.h"

#include <signal.h>

#include "host/exit_status.h"

namespace muster {
namespace {

/// A shell has this exit code if its command was killed.
constexpr int kKilledBelowShell = 128 + SIGKILL;

}  // namespace

NodeExited ExitOf(const ContainerEnd& end) {
  NodeExited exit{.node = end.node,
                  .pid = static_cast<uint64_t>(end.exited.pid),
                  .exit = {.signal = end.exited.signal, .code = end.exited.code},
                  .slot = end.slot,
                  .last_words = end.last_words,
                  .not_started = end.exited.shortage != 0};
  if (!end.after.has_value()) return exit;
  exit.memory_peak_bytes = end.after->memory_peak_bytes;
  exit.memory_limit_bytes = end.after->memory_limit_bytes;
  const uint64_t kills_before = end.before.has_value() ? end.before->oom_kills : 0;
  const bool may_be = exit.exit.signal == SIGKILL || Classify(exit.exit) == ExitKind::kProgram;
  if (!may_be || end.after->oom_kills <= kills_before) return exit;
  exit.memory_kill = KillOf(*end.after);
  if (exit.exit.code == kKilledBelowShell) exit.exit = {.signal = SIGKILL};
  return exit;
}

NodeExited NotRun(const std::string& node, int code, const std::string& why) {
  return {.node = node,
          .pid = 0,
          .exit = {.signal = 0, .code = code},
          .slot = std::nullopt,
          .last_words = why + "\n"};
}

}  // namespace muster
