#pragma once

#include <cstdint>
#include <string>

#include "cli/state/job_source.h"

namespace muster {

struct StacksOptions {
  QueryOptions query;
  std::string node;
  uint32_t timeout_s = 10;
};
/// `muster stacks`. Asks no process of the job, so that a node that hangs gives an answer, too.
/// Returns the exit code of the process.
int StacksCommand(const StacksOptions& options);

}  // namespace muster
