#include "cli/run/event_lines.h"

#include <fmt/format.h>

#include "base/text.h"
#include "host/messages.h"
#include "master/core/event_log.h"

namespace muster {
namespace {

/// Only the first line of the text is shown. The text of an exit continues with the last lines of
/// the log.
std::string TextOf(const MasterEvent& event) {
  return event.kind + (event.node.empty() ? "" : " " + event.node) +
         (event.text.empty() ? "" : ": " + FirstLine(event.text));
}

}  // namespace

std::vector<EventLine> EventLines(const std::vector<MasterEvent>& events, uint64_t since_wall_us) {
  uint64_t rejected = 0;
  for (const MasterEvent& event : events) {
    if (event.wall_us >= since_wall_us && event.kind == kRecordRejected.word()) ++rejected;
  }
  std::vector<EventLine> lines;
  uint64_t rejected_seen = 0;
  for (const MasterEvent& event : events) {
    if (event.wall_us < since_wall_us) continue;
    std::string text = TextOf(event);
    if (event.kind == kRecordRejected.word()) {
      if (++rejected_seen < rejected) continue;
      if (rejected > 1) {
        text += fmt::format(" (the newest of {})", CountText(rejected, "rejected record"));
      }
    }
    lines.push_back({.text = std::move(text),
                     .told_elsewhere = event.kind == "job-ended" || event.node == "master" ||
                                       event.node == "scaler"});
  }
  return lines;
}

std::optional<std::string> DecisionLine(const scaler::rest::Event& event,
                                        uint64_t started_wall_us) {
  const bool told = event.kind == "decision" || event.kind == "action" || event.kind == "outcome";
  if (!told || event.wall_us < started_wall_us) return std::nullopt;
  return fmt::format("#{} {}{} {}: {}", event.id, event.kind,
                     event.verdict.empty() ? "" : " " + event.verdict, event.target,
                     Printable(event.because.substr(0, event.because.find('\n'))));
}

}  // namespace muster
