#pragma once

#include "cli/ask/query_commands.h"

namespace muster::steer {

struct DashboardOptions {
  QueryOptions query;
  bool open = false;  // also opens it in the browser
  /// If true, this process must live on, so a child becomes the browser.
  bool stays = false;
};
/// Prints the address of the job's page, with the token that the page needs. Returns the exit code
/// of the process.
int DashboardCommand(const DashboardOptions& options);

}  // namespace muster::steer
