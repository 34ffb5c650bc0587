#include "scaler/core/messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

std::string ToString(JobPhase phase) {
  static constexpr const char* kNames[] = {"unknown",   "running", "draining",  "drained",
                                           "succeeded", "failed",  "cancelled", "stopped"};
  return kNames[static_cast<size_t>(phase)];
}

TellMaster ExitReport(const NodeExited& event, NodeRole role, uint32_t starts) {
  TellMaster tell{.node = event.node,
                  .role = role,
                  .pid = event.pid,
                  .exited = true,
                  .exit = event.exit,
                  .text = event.last_words,
                  .restarts = starts - 1};
  if (event.slot.has_value()) {
    tell.computing_token = event.slot->computing_token.value();
    tell.minibatches_started = event.slot->minibatches_started;
    tell.incarnation = event.slot->incarnation;
  }
  return tell;
}

std::string CrashLoopReason(const NodeExited& event, uint32_t exits) {
  return fmt::format(
      "{} ended {} times without progress in between, the last time with {}: {}.{}{}\n  The whole "
      "log: muster logs {}. When it is mended, run the job again: it goes on where it stopped.",
      event.node, exits, ToString(event.exit), Explain(event.exit),
      event.last_words.empty() ? "" : "\n  Its last lines:", Indented(event.last_words),
      event.node);
}

std::string RelaunchNote(const NodeExited& event, std::chrono::milliseconds delay) {
  return fmt::format("{} ended ({}); starting it again{}", event.node, ToString(event.exit),
                     delay.count() == 0 ? "" : " in " + InSeconds(delay));
}

std::string InSeconds(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", static_cast<double>(duration.count()) / 1000.0);
}

std::string Indented(const std::string& lines) {
  std::string text;
  size_t begin = 0;
  while (begin < lines.size()) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    text += "\n    " + lines.substr(begin, end - begin);
    begin = end + 1;
  }
  return text;
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace muster
