#pragma once

#include <string>
#include <vector>

#include "cli/show/output.h"

namespace muster::metrics {

struct CompareOptions {
  std::vector<std::string> jobs;  // state directories or job files
  OutputFormat output = OutputFormat::kText;
};
/// `muster compare`: shows jobs side by side, whether or not they run. Returns the exit code of the
/// process.
int CompareCommand(const CompareOptions& options);

}  // namespace muster::metrics
