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
/// `muster stacks`. It asks no process of the job, so it also works for a node that hangs. Returns
/// the exit code of the process.
int StacksCommand(const StacksOptions& options);

}  // namespace muster
