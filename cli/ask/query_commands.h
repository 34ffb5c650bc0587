#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/state/job_source.h"

/// The verbs that ask a running job's master, or the state directory of one that does not run. Each
/// returns the exit code of the process.
namespace muster {

struct StatusOptions {
  QueryOptions query;
  bool all_epochs = false;  // as text: each by itself; documents have all
};
int StatusCommand(const StatusOptions& options);
int NodesCommand(const QueryOptions& options);

struct ShardsOptions {
  QueryOptions query;
  std::string state;  // leased, done, failed; "" = all
  uint32_t limit = 1000;
  uint64_t offset = 0;
};
int ShardsCommand(const ShardsOptions& options);

struct PartitionsOptions {
  QueryOptions query;
  uint32_t limit = 1000;
  uint64_t offset = 0;
};
int PartitionsCommand(const PartitionsOptions& options);

struct ExportCommandOptions {
  QueryOptions query;
  std::string output_directory;
  /// As the manifest request understands it (ManifestRequestFor); empty: the newest weights.
  std::string epoch;
};
/// Works without a running job as well.
int ExportCommand(const ExportCommandOptions& options);

}  // namespace muster
