#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/status/job_status.h"
#include "scaler/model/model.h"

/// Merges the events of master and scaler.
namespace muster::steer {

/// One event of master or scaler, or both events of the same exit of a node.
struct TimelineEntry {
  std::optional<MasterEvent> master;
  std::optional<scaler::rest::Event> scaler;
  /// For an exit: an earlier Take() has held it back, because the other event was missing.
  bool waited = false;

  uint64_t wall_us() const { return scaler ? scaler->wall_us : master->wall_us; }
  const std::string& kind() const { return scaler ? scaler->kind : master->kind; }
  const std::string& node() const { return scaler ? scaler->target : master->node; }
};

/// Sorts events by time, and leaves out those that were not requested. Pure; a value.
class Timeline {
 public:
  struct Filter {
    /// Only the scaler's events after this one, and only later events of the master.
    uint64_t after_id = 0;
    std::vector<std::string> kinds;  // none: all
    std::string node;                // "": all
    /// If true, both events of one exit become one entry.
    bool pair_exits = false;
  };
  explicit Timeline(Filter filter) : filter_(std::move(filter)) {}

  void Add(const MasterEvent& event);
  void Add(const scaler::rest::Event& event);
  /// The events that were added since the last call, oldest first. If times are equal, each source
  /// keeps its own order. `more` says that further calls follow. Then an exit that only one source
  /// has reported is held back until the next call.
  std::vector<TimelineEntry> Take(bool more = false);

 private:
  void PairExits();
  bool Matches(const TimelineEntry& entry) const;

  Filter filter_;
  uint64_t hidden_until_us_ = 0;
  std::vector<TimelineEntry> entries_;
};

/// A line for people. Below the line of an exit, the last lines of the node's log follow.
std::string EntryText(const TimelineEntry& entry);
/// {"source", "sequence", "id", "wall_us", "time", "kind", "node", "text", "event"} for both
/// sources. "sequence" is null for the scaler, and "id" and "event" are null for the master.
nlohmann::json EntryToJson(const TimelineEntry& entry);

/// OK if master or scaler has events of this kind. Otherwise InvalidArgument names the most similar
/// kind, and all kinds.
absl::Status CheckEventKind(const std::string& word);

/// Parses "12" or "#12". Otherwise InvalidArgument.
absl::StatusOr<uint64_t> ParseEventId(const std::string& text);

}  // namespace muster::steer
