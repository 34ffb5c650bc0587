#pragma once

#include "cli/ask/query_commands.h"

namespace muster::steer {

struct TopOptions {
  QueryOptions query;
  double interval_s = 1;
  bool once = false;
};

/// `muster top`: what the job does now, redrawn on a terminal and printed repeatedly elsewhere,
/// until the job ends or the user quits. Returns the exit code.
int TopCommand(const TopOptions& options);

}  // namespace muster::steer
