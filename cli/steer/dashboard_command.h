#pragma once

#include "cli/ask/query_commands.h"

namespace muster::steer {

struct DashboardOptions {
  QueryOptions query;
  bool open = false;  // in the browser, too
  /// This process must live on: the browser is a child.
  bool stays = false;
};
/// Prints the address of the job's page, with the token that it needs. Returns the exit code of the
/// process.
int DashboardCommand(const DashboardOptions& options);

}  // namespace muster::steer
