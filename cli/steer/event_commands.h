#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/ask/query_commands.h"

/// The verbs that say what happened and why. They work while the job runs and afterwards. Each
/// returns the exit code of the process.
namespace muster::steer {

struct EventsOptions {
  QueryOptions query;
  bool follow = false;
  uint32_t last = 0;  // only this many of the newest; 0 = all
  std::string after;  // only what came after this scaler's event; "" = all
  std::vector<std::string> kinds;
  std::string node;
};
int EventsCommand(const EventsOptions& options);

struct ExplainOptions {
  QueryOptions query;
  std::string event;
};
int ExplainCommand(const ExplainOptions& options);

}  // namespace muster::steer
