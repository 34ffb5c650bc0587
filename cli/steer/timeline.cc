#include "cli/steer/timeline.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/nearest.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/show/json_output.h"
#include "cli/show/text_output.h"
#include "cli/steer/event_text.h"
#include "proto/status/event_kinds.h"
#include "scaler/decision/event_drafts.h"
#include "scaler/model/model_json.h"

namespace muster::steer {

namespace {

constexpr std::string_view kScalersExit = "exit";

bool IsUnpairedExit(const TimelineEntry& entry) {
  if (entry.master && entry.scaler) return false;
  return entry.scaler ? entry.kind() == kScalersExit : IsExitKind(entry.kind());
}

/// If the scaler does not name the process, both events of one exit may be this far apart. It does
/// not name the process for its own exit and for that of the master, and in events of earlier
/// versions.
constexpr uint64_t kSameExitUs = 30'000'000;

/// True if both events are about the exit of the same process.
bool IsSameExit(const MasterEvent& master, const scaler::rest::Event& scaler) {
  if (master.node != scaler.target) return false;
  const std::optional<double> pid = muster::scaler::FigureOf(scaler, muster::scaler::kPidFigure);
  // The master's text begins with "pid 17: SIGKILL".
  if (pid.has_value()) return master.text.starts_with(fmt::format("pid {:.0f}: ", *pid));
  return std::max(master.wall_us, scaler.wall_us) - std::min(master.wall_us, scaler.wall_us) <=
         kSameExitUs;
}

/// The scaler's text has the cause, and the number for `muster explain`. The master adds the pid
/// and the last lines of the log.
std::string ExitText(const MasterEvent& master, const scaler::rest::Event& scaler) {
  std::string text = EventLine(scaler);
  text.pop_back();
  const std::string_view words = master.text;
  const size_t status = words.find(": ");
  text += fmt::format("; {}\n", words.substr(0, status));
  const size_t log = words.find(": ", status + 2);
  if (log == std::string_view::npos) return text;
  for (std::string_view rest = words.substr(log + 2); !rest.empty();) {
    const size_t end = rest.find('\n');
    text += fmt::format("    {}\n", Printable(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return text;
}

}  // namespace

void Timeline::Add(const MasterEvent& event) {
  entries_.push_back({.master = event, .scaler = std::nullopt});
}

void Timeline::Add(const scaler::rest::Event& event) {
  if (event.id <= filter_.after_id) hidden_until_us_ = std::max(hidden_until_us_, event.wall_us);
  entries_.push_back({.master = std::nullopt, .scaler = event});
}

void Timeline::PairExits() {
  for (TimelineEntry& entry : entries_) {
    if (!entry.scaler || !IsUnpairedExit(entry)) continue;
    const auto twin = std::ranges::find_if(entries_, [&](const TimelineEntry& other) {
      return other.master && IsUnpairedExit(other) && IsSameExit(*other.master, *entry.scaler);
    });
    if (twin == entries_.end()) continue;
    entry.master = std::move(twin->master);
    twin->master.reset();
  }
  std::erase_if(entries_,
                [](const TimelineEntry& entry) { return !entry.master && !entry.scaler; });
}

bool Timeline::Matches(const TimelineEntry& entry) const {
  const auto wanted = [this](std::string_view kind) {
    return std::ranges::find(filter_.kinds, kind) != filter_.kinds.end();
  };
  const bool hidden =
      entry.scaler ? entry.scaler->id <= filter_.after_id : entry.wall_us() <= hidden_until_us_;
  const bool of_kind =
      filter_.kinds.empty() || wanted(entry.kind()) || (entry.master && wanted(entry.master->kind));
  return !hidden && of_kind && (filter_.node.empty() || entry.node() == filter_.node);
}

std::vector<TimelineEntry> Timeline::Take(bool more) {
  if (filter_.pair_exits) PairExits();
  std::vector<TimelineEntry> kept;
  std::vector<TimelineEntry> taken;
  for (TimelineEntry& entry : entries_) {
    if (more && filter_.pair_exits && !entry.waited && IsUnpairedExit(entry)) {
      entry.waited = true;
      kept.push_back(std::move(entry));
    } else if (Matches(entry)) {
      taken.push_back(std::move(entry));
    }
  }
  entries_ = std::move(kept);
  std::ranges::stable_sort(taken, {}, &TimelineEntry::wall_us);
  return taken;
}

std::string EntryText(const TimelineEntry& entry) {
  if (entry.scaler && entry.master) return ExitText(*entry.master, *entry.scaler);
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
