#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/steer/event_commands.h"
#include "cli/steer/order_commands.h"
#include "cli/steer/top_command.h"

namespace muster {

/// The options of the verbs of cli/steer, and what the chosen one is going to do.
struct SteerVerbs {
  steer::EventsOptions events;
  steer::ExplainOptions explain;
  steer::TopOptions top;
  steer::RestartOptions restart;
  steer::ResizeOptions resize;
  steer::ScaleOptions scale;
  steer::DrainOptions drain;
  steer::CancelOptions cancel;
  QueryOptions policies;
  steer::PausePolicyOptions policy;
  /// Runs the verb, returns its exit code; none when the chosen verb is not of these.
  std::function<int()> chosen;
};

/// events, drain, cancel: those that the master can carry out when no scaler serves. `verbs` must
/// stay where it is until the line is parsed and the verb has run.
void AddSteerVerbs(CLI::App* app, SteerVerbs* verbs);

/// explain, top, restart, resize, scale, policies: those that only a scaler can.
void AddScalerVerbs(CLI::App* app, SteerVerbs* verbs);

}  // namespace muster
