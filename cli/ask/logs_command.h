#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/state/job_source.h"

namespace muster {

struct LogsOptions {
  /// Lines from the end, of one node, and of each of several.
  static constexpr uint32_t kLinesOfOne = 100;
  static constexpr uint32_t kLinesOfEach = 10;

  QueryOptions query;
  std::vector<std::string> nodes;  // none: all that have a log
  /// From the end, of each node; negative: all. Absent: as above, all with `since`.
  std::optional<int64_t> lines;
  std::string since;  // ParseSince; "": from the beginning
  bool follow = false;
};
/// `muster logs`. Works without a running job as well. Returns the exit code of the process.
int LogsCommand(const LogsOptions& options);

/// How many lines from the end of each log the line asks for.
uint32_t LinesOfEach(const LogsOptions& options);

}  // namespace muster
