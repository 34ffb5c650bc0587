#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/job_loader.h"
#include "cli/output.h"
#include "proto/admin.pb.h"

/// The verbs that ask a running job, or the state directory of one that does not run, and those
/// that give orders to a running one. Each returns the exit code of the process.
namespace muster {

struct QueryOptions {
  JobTarget target;
  /// Asks this master instead of the one that the state directory names.
  std::string master;
  OutputFormat output = OutputFormat::kText;
};

int StatusCommand(const QueryOptions& options);
int NodesCommand(const QueryOptions& options);

struct ShardsOptions {
  QueryOptions query;
  std::string state;  // leased, done, failed; "" = all
  uint32_t limit = 1000;
  uint64_t offset = 0;
  bool retry = false;
  std::vector<std::string> retry_ids;  // "dataset/epoch/index"; empty: all FAILED
};
int ShardsCommand(const ShardsOptions& options);

struct EventsOptions {
  QueryOptions query;
  bool follow = false;
  uint32_t last = 0;  // only so many of the newest; 0 = all
};
int EventsCommand(const EventsOptions& options);

struct LogsOptions {
  QueryOptions query;
  std::string node;
  uint32_t lines = 100;
  bool follow = false;
};
/// Works without a running job as well.
int LogsCommand(const LogsOptions& options);

struct PartitionsOptions {
  QueryOptions query;
  uint32_t limit = 1000;
  uint64_t offset = 0;
};
int PartitionsCommand(const PartitionsOptions& options);

struct DrainOptions {
  QueryOptions query;
  std::string node;  // "": the whole job
  bool undo = false;
  bool wait = false;       // until the node is drained
  uint32_t timeout_s = 0;  // of the node's drain; 0: the job file's
};
int DrainCommand(const DrainOptions& options);

struct CancelOptions {
  QueryOptions query;
  std::string reason;
};
int CancelCommand(const CancelOptions& options);

struct ExportCommandOptions {
  QueryOptions query;
  std::string output_directory;
};
/// Works without a running job as well.
int ExportCommand(const ExportCommandOptions& options);

/// "dataset/epoch/index" as `muster shards` prints it; InvalidArgument otherwise.
absl::StatusOr<v1::ShardId> ParseShardId(const std::string& text);

}  // namespace muster
