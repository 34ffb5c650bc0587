#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/state/job_source.h"

/// The verbs that ask a running job's master. If the job does not run, they read its state
/// directory. Each returns the exit code of the process.
namespace muster {

struct StatusOptions {
  QueryOptions query;
  bool all_epochs = false;  // text shows each epoch by itself; documents always have all
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
  /// See ManifestRequestFor; empty: the newest weights.
  std::string epoch;
};
/// It also works without a running job.
int ExportCommand(const ExportCommandOptions& options);

}  // namespace muster
