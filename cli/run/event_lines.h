#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/status/job_status.h"
#include "scaler/model/event_model.h"

namespace muster {

/// What `muster run` says of an event of the master.
struct EventLine {
  std::string text;
  bool told_elsewhere = false;  // by the supervisor itself, or by the summary
};

/// A line for each of the events, oldest first, without those before `since_wall_us`: a resumed
/// journal has the events of former runs. Events of rejected records are one line, which has the
/// newest of them and their number. Pure.
std::vector<EventLine> EventLines(const std::vector<MasterEvent>& events, uint64_t since_wall_us);

/// "#7 decision kept worker-1: why" of one of the scaler's events; none if progress does not show
/// it: the master reports exits, notes are only for `muster events`, and former runs are over.
std::optional<std::string> DecisionLine(const scaler::rest::Event& event, uint64_t started_wall_us);

}  // namespace muster
