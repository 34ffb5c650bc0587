#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/state/job_source.h"

namespace muster {

struct LogsOptions {
  /// How many lines from the end are shown if there is one node, and how many of each if there are
  /// several.
  static constexpr uint32_t kLinesOfOne = 100;
  static constexpr uint32_t kLinesOfEach = 10;

  QueryOptions query;
  std::vector<std::string> nodes;  // none: all nodes with a log
  /// How many lines from the end of each log; negative: all. If absent, the numbers above, or all
  /// with `since`.
  std::optional<int64_t> lines;
  std::string since;  // see ParseSince; "": from the beginning
  bool follow = false;
};
/// `muster logs`. It also works without a running job. Returns the exit code of the process.
int LogsCommand(const LogsOptions& options);

/// How many lines from the end of each log the command line asks for.
uint32_t LinesOfEach(const LogsOptions& options);

}  // namespace muster
