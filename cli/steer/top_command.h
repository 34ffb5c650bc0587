#pragma once

#include "cli/ask/query_commands.h"

namespace muster::steer {

struct TopOptions {
  QueryOptions query;
  double interval_s = 1;
  bool once = false;
};

/// `muster top`: shows what the job does now, until the job ends or the user quits. On a terminal,
/// it redraws the screen; elsewhere it prints repeatedly. Returns the exit code.
int TopCommand(const TopOptions& options);

}  // namespace muster::steer
