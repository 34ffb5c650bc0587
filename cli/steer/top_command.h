#pragma once

#include "cli/ask/query_commands.h"

namespace muster::steer {

struct TopOptions {
  QueryOptions query;
  double interval_s = 1;
  bool once = false;
};

/// `muster top`: what the job does now, drawn anew on a terminal, printed again and again
/// elsewhere, until the job ends or somebody does not want to see it any more. Returns the exit
/// code.
int TopCommand(const TopOptions& options);

}  // namespace muster::steer
