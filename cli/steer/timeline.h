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

/// The events of master and scaler as one story.
namespace muster::steer {

/// One event of either, or what both say about the same exit of a node.
struct TimelineEntry {
  std::optional<MasterEvent> master;
  std::optional<scaler::rest::Event> scaler;
  /// Of an exit: Take() has kept it back before, because the other part was not there.
  bool waited = false;

  uint64_t wall_us() const { return scaler ? scaler->wall_us : master->wall_us; }
  const std::string& kind() const { return scaler ? scaler->kind : master->kind; }
  const std::string& node() const { return scaler ? scaler->target : master->node; }
};

/// Sorts events by their times, and leaves out those that were not requested. Pure; a value.
class Timeline {
 public:
  struct Filter {
    /// Only events after this one of the scaler, and only later ones of the master.
    uint64_t after_id = 0;
    std::vector<std::string> kinds;  // none: all
    std::string node;                // "": all
    /// What both say about an exit is one entry.
    bool pair_exits = false;
  };
  explicit Timeline(Filter filter) : filter_(std::move(filter)) {}

  void Add(const MasterEvent& event);
  void Add(const scaler::rest::Event& event);
  /// The events added since the last call, oldest first. If times are equal, each source keeps its
  /// own order. With `more`, further calls follow, and an exit that only one of both has told yet
  /// is kept back until the next one.
  std::vector<TimelineEntry> Take(bool more = false);

 private:
  void PairExits();
  bool Matches(const TimelineEntry& entry) const;

  Filter filter_;
  uint64_t hidden_until_us_ = 0;
  std::vector<TimelineEntry> entries_;
};

/// A line for people; below the line of an exit come the last lines of the node's log.
std::string EntryText(const TimelineEntry& entry);
/// {"source", "sequence", "id", "wall_us", "time", "kind", "node", "text", "event"}, for both
/// sources: "sequence" is null for the scaler, "id" and "event" are null for the master.
nlohmann::json EntryToJson(const TimelineEntry& entry);

/// OK if master or scaler has events of this kind. InvalidArgument names the nearest, and all.
absl::Status CheckEventKind(const std::string& word);

/// "12" or "#12". InvalidArgument otherwise.
absl::StatusOr<uint64_t> ParseEventId(const std::string& text);

}  // namespace muster::steer
