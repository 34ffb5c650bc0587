#include "scaler/decision/log/event_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "scaler/model/model_json.h"
#include "scaler/model/orders.h"

namespace muster::scaler {
namespace {

/// A file of a writer stays far below this size.
constexpr uint64_t kFileBytesMax = uint64_t{256} << 20;
// Names and figures together always stay well below kEventBytesMax.
constexpr size_t kNameBytesMax = 64;
constexpr size_t kFiguresMax = 8;
constexpr size_t kEvidenceMax = 32;
constexpr size_t kDamageMax = 100;

rest::Event Unreadable(uint64_t id, const std::string& why) {
  return {.id = id, .kind = "note", .because = "this event cannot be read any more: " + why};
}

std::map<std::string, double> BoundedFigures(const std::map<std::string, double>& figures) {
  std::map<std::string, double> bounded;
  for (const auto& [name, value] : figures) {
    if (bounded.size() < kFiguresMax) bounded[ValidUtf8(name, kNameBytesMax)] = value;
  }
  return bounded;
}

/// A line of a file. It has an event if it can be read.
struct Line {
  std::string_view path;
  size_t number = 0;  // from 1
  std::optional<rest::Event> event;
};

/// Appends the lines of a file to `lines`. Returns the bytes of its complete lines.
absl::StatusOr<uint64_t> ReadLines(const std::string& path, std::vector<Line>* lines) {
  const absl::StatusOr<std::string> contents = ReadFile(path, kFileBytesMax);
  if (absl::IsNotFound(contents.status())) return 0;
  MUSTER_RETURN_IF_ERROR(contents.status());
  std::string_view rest = *contents;
  size_t number = 0;
  for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    absl::StatusOr<rest::Event> event = ParseEventLine(rest.substr(0, end));
    lines->push_back({.path = path, .number = ++number});
    if (event.ok()) lines->back().event = *std::move(event);
    rest.remove_prefix(end + 1);
  }
  return contents->size() - rest.size();
}

/// Ids ascend. A line is not reliable if its id is not larger than the id before it, or not smaller
/// than the id after it.
void DropMisplaced(std::vector<Line>* lines) {
  uint64_t last = 0;  // of a line that is kept
  for (auto line = lines->begin(); line != lines->end(); ++line) {
    const auto fits = [last](const Line& any) {
      return any.event.has_value() && any.event->id > last;
    };
    const auto next = fits(*line) ? std::find_if(line + 1, lines->end(), fits) : line;
    if (next == line || (next != lines->end() && next->event->id <= line->event->id)) {
      line->event.reset();
    } else {
      last = line->event->id;
    }
  }
}

/// Adds a note for each missing event in [from, to). Only the newest `events_max` matter.
void FillUp(uint64_t from, uint64_t to, const std::string& why, size_t events_max,
            std::vector<rest::Event>* events) {
  if (to - from > events_max) {
    events->clear();
    from = to - events_max;
  }
  for (; from < to; ++from) events->push_back(Unreadable(from, why));
}

void TakeEvents(std::vector<Line> lines, size_t events_max, EventFileContents* contents) {
  std::vector<rest::Event>& events = contents->events;
  const auto tell = [contents](std::string damage) {
    if (contents->damage.size() < kDamageMax) contents->damage.push_back(std::move(damage));
  };
  std::string why;
  uint64_t damaged = 0;
  for (Line& line : lines) {
    if (!line.event.has_value()) {
      why = fmt::format("line {} of {} is damaged", line.number, line.path);
      tell(why);
      ++damaged;
      continue;
    }
    const uint64_t id = line.event->id;
    // Before the first kept event, only the damaged lines are known to be missing.
    const uint64_t from = events.empty() ? id - std::min(damaged, id - 1) : events.back().id + 1;
    if (from < id && damaged == 0) {
      why = "it is missing in " + std::string(line.path);
      tell(fmt::format("events {} to {} are missing in {}", from, id - 1, line.path));
    }
    FillUp(from, id, why, events_max, &events);
    events.push_back(*std::move(line.event));
    damaged = 0;
  }
  // Every damaged line had an id, and no id is used again.
  const uint64_t next = events.empty() ? 1 : events.back().id + 1;
  FillUp(next, next + damaged, why, events_max, &events);
}

}  // namespace

std::string EventFile(const std::string& folder) {
  return folder + "/events.jsonl";
}

std::string OldEventFile(const std::string& folder) {
  return folder + "/events.old.jsonl";
}

rest::Event BoundedEvent(rest::Event event) {
  for (std::string* text :
       {&event.kind, &event.policy, &event.target, &event.action, &event.verdict}) {
    *text = ValidUtf8(*text, kNameBytesMax);
  }
  event.before = BoundedFigures(event.before);
  event.after = BoundedFigures(event.after);
  if (event.evidence.size() > kEvidenceMax) event.evidence.resize(kEvidenceMax);
  for (rest::Evidence& evidence : event.evidence) {
    evidence.name = ValidUtf8(evidence.name, kNameBytesMax);
    evidence.unit = ValidUtf8(evidence.unit, kNameBytesMax);
  }
  event.because = ValidUtf8(event.because, kEventBytesMax);
  // A control character, also in a name, has one byte but takes six in JSON.
  while (EventLine(event).size() > kEventBytesMax && !event.because.empty()) {
    event.because = ValidUtf8(event.because, event.because.size() / 2);
  }
  while (EventLine(event).size() > kEventBytesMax && !event.evidence.empty()) {
    event.evidence.pop_back();
  }
  return event;
}

std::string EventLine(const rest::Event& event) {
  return rest::Dump(ToJson(event)) + "\n";
}

absl::StatusOr<rest::Event> ParseEventLine(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded()) return absl::DataLossError("not an event: no JSON");
  absl::StatusOr<rest::Event> event = FromJson<rest::Event>(json);
  if (!event.ok())
    return absl::DataLossError(fmt::format("not an event: {}", Message(event.status())));
  if (event->id == 0) return absl::DataLossError("not an event: it has no id");
  event->action = NameToday(event->action);
  return event;
}

absl::StatusOr<EventFileContents> ReadEventFiles(const std::string& folder, size_t events_max) {
  EventFileContents contents;
  std::vector<Line> lines;
  const std::string old_path = OldEventFile(folder);
  const std::string path = EventFile(folder);
  MUSTER_RETURN_IF_ERROR(ReadLines(old_path, &lines).status());
  MUSTER_ASSIGN_OR_RETURN(contents.bytes, ReadLines(path, &lines));
  DropMisplaced(&lines);
  TakeEvents(std::move(lines), events_max, &contents);
  if (contents.events.size() > events_max) {
    contents.events.erase(contents.events.begin(),
                          contents.events.end() - static_cast<std::ptrdiff_t>(events_max));
  }
  return contents;
}

}  // namespace muster::scaler
