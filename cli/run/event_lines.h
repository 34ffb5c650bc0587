#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/status/job_status.h"
#include "scaler/model/event_model.h"

namespace muster {

/// The line that `muster run` prints for an event of the master.
struct EventLine {
  std::string text;
  bool told_elsewhere = false;  // the supervisor itself or the summary reports it
};

/// Returns a line for each of the events, oldest first. Events before `since_wall_us` are left out,
/// because a resumed journal has events of former runs. All rejected records together get one line,
/// with the newest of them and their number. Pure.
std::vector<EventLine> EventLines(const std::vector<MasterEvent>& events, uint64_t since_wall_us);

/// The line about an event of the scaler: "#7 decision kept worker-1: why". None if progress does
/// not show the event: the master reports exits itself, notes are only for `muster events`, and
/// former runs are over.
std::optional<std::string> DecisionLine(const scaler::rest::Event& event, uint64_t started_wall_us);

}  // namespace muster
