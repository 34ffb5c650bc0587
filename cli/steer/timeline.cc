#include "cli/steer/timeline.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/nearest.h"
#include "base/status.h"
#include "cli/show/json_output.h"
#include "cli/show/text_output.h"
#include "cli/steer/event_text.h"
#include "proto/status/event_kinds.h"
#include "scaler/model/model_json.h"

namespace muster::steer {

void Timeline::Add(const MasterEvent& event) {
  entries_.push_back({.master = event, .scaler = std::nullopt});
}

void Timeline::Add(const scaler::rest::Event& event) {
  if (event.id <= filter_.after_id) {
    hidden_until_us_ = std::max(hidden_until_us_, event.wall_us);
    return;
  }
  entries_.push_back({.master = std::nullopt, .scaler = event});
}

std::vector<TimelineEntry> Timeline::Take() {
  std::erase_if(entries_, [this](const TimelineEntry& entry) {
    return (entry.master && entry.wall_us() <= hidden_until_us_) ||
           (!filter_.kinds.empty() &&
            std::ranges::find(filter_.kinds, entry.kind()) == filter_.kinds.end()) ||
           (!filter_.node.empty() && entry.node() != filter_.node);
  });
  std::ranges::stable_sort(entries_, {}, &TimelineEntry::wall_us);
  return std::exchange(entries_, {});
}

std::string EntryText(const TimelineEntry& entry) {
  return entry.scaler ? EventLine(*entry.scaler) : EventText(*entry.master);
}

nlohmann::json EntryToJson(const TimelineEntry& entry) {
  nlohmann::json json = {{"source", entry.scaler ? "scaler" : "master"},
                         {"sequence", nullptr},
                         {"id", nullptr},
                         {"wall_us", entry.wall_us()},
                         {"time", WallToText(entry.wall_us())},
                         {"kind", entry.kind()},
                         {"node", entry.node()},
                         {"text", nullptr},
                         {"event", nullptr}};
  if (entry.scaler) {
    json["id"] = entry.scaler->id;
    json["text"] = EventWords(*entry.scaler);
    json["event"] = ToJson(*entry.scaler);
  } else {
    json["sequence"] = entry.master->sequence;
    json["text"] = entry.master->text;
  }
  return json;
}

absl::Status CheckEventKind(const std::string& word) {
  std::vector<std::string> known(scaler::rest::kEventKinds.begin(),
                                 scaler::rest::kEventKinds.end());
  const size_t of_scaler = known.size();
  known.insert(known.end(), kMasterEventKinds.begin(), kMasterEventKinds.end());
  if (std::ranges::find(known, word) != known.end()) return absl::OkStatus();
  const std::string nearest = Nearest(word, known);
  const auto master = known.begin() + static_cast<std::ptrdiff_t>(of_scaler);
  return absl::InvalidArgumentError(fmt::format(
      "there are no events of the kind '{}'.{} The scaler's kinds are {}; the master's are {}",
      word, nearest.empty() ? "" : fmt::format(" Did you mean {}?", nearest),
      fmt::join(known.begin(), master, ", "), fmt::join(master, known.end(), ", ")));
}

absl::StatusOr<uint64_t> ParseEventId(const std::string& text) {
  const std::string_view digits = std::string_view(text).substr(text.starts_with('#') ? 1 : 0);
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size() || id == 0) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no event of the scaler; write its number, as `muster events` shows it: 12", text));
  }
  return id;
}

}  // namespace muster::steer
