#include "host/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"

namespace muster {

TellMaster ExitReport(const NodeExited& event, NodeRole role, uint32_t starts) {
  TellMaster tell{.node = event.node,
                  .role = role,
                  .start = StartNumber(starts),
                  .pid = event.pid,
                  .exited = true,
                  .exit = event.exit,
                  .text = DisruptionText(event.disruption, event.disruption_text),
                  .disruption = event.disruption};
  const auto say = [&tell](const std::string& text) {
    if (!text.empty()) tell.text += (tell.text.empty() ? "" : "; ") + text;
  };
  say(MemoryKillText(event));
  const ExitKind kind = Classify(event.exit);
  if (event.slot.has_value()) {
    const size_t loops = event.slot->computing.size();
    tell.incarnation = event.slot->incarnation;
    if (const auto alone = event.slot->Alone()) {
      tell.computing_token = alone->token.value();
      tell.minibatches_started = alone->minibatches_started;
    } else if (kind == ExitKind::kProgram && event.disruption == Disruption::kNone && loops > 0) {
      say(
          fmt::format("its loops were in {}{} shards. It is not known which shard caused the exit, "
                      "so no failure is counted",
                      event.slot->crowded ? "more than " : "", loops));
    }
  }
  // The output of a node that ended without an error is not of interest.
  if (kind != ExitKind::kClean) say(event.last_words);
  return tell;
}

std::string MemoryKillText(const NodeExited& event) {
  switch (event.memory_kill) {
    case MemoryKill::kNone:
      return "";
    case MemoryKill::kKernel:
      return fmt::format("the kernel killed it at its memory limit of {}",
                         BytesText(event.memory_limit_bytes));
    case MemoryKill::kOwn:
      return fmt::format("it was killed with {} of memory, above its limit of {}",
                         BytesText(event.memory_peak_bytes), BytesText(event.memory_limit_bytes));
    case MemoryKill::kMachine:
      break;
  }
  return fmt::format(
      "the kernel killed it with {} of memory, because the machine had no memory left",
      BytesText(event.memory_peak_bytes));
}

/// Why it ended, as far as that is known, and what to do.
static std::string Cause(const NodeExited& event) {
  if (!event.killed_for.empty()) return "it was killed, because " + event.killed_for;
  const std::string memory = MemoryKillText(event);
  return memory.empty() ? Explain(event.exit) : memory + "; give it more memory, or less work";
}

std::string CrashLoopReason(const NodeExited& event, uint32_t exits) {
  return fmt::format(
      "{} ended {} times without progress in between, the last time with {}: {}.{}{}\n  The whole "
      "log: muster logs {}. When it is fixed, run the job again: it continues where it stopped.",
      event.node, exits, ToString(event.exit), Cause(event),
      event.last_words.empty() ? "" : "\n  Its last lines:", Indented(event.last_words),
      event.node);
}

bool IsShortage(const absl::Status& status) {
  // ENOSPC, EDQUOT, ENOMEM, EMFILE, ENFILE, and EAGAIN, which fork() returns for too many
  // processes.
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

NodeExited NotBegun(const std::string& node, const absl::Status& why) {
  return {.node = node,
          .pid = 0,
          .exit = {.signal = 0, .code = 126},
          .slot = std::nullopt,
          .last_words = std::string(Message(why)) + "\n",
          .not_started = IsShortage(why)};
}

std::string RestartNote(const NodeExited& event, std::chrono::milliseconds delay) {
  const std::string when = delay.count() == 0 ? "" : " in " + InSeconds(delay);
  if (event.not_started) {
    return fmt::format("{} could not be started ({}); trying again{}", event.node,
                       FirstLine(event.last_words), when);
  }
  std::string why = DisruptionText(event.disruption, event.disruption_text);
  if (why.empty()) why = event.killed_for;
  if (why.empty()) why = MemoryKillText(event);
  return fmt::format("{} ended ({}{}); restarting it{}", event.node, ToString(event.exit),
                     why.empty() ? "" : ": " + why, when);
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
