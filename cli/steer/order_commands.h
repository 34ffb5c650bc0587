#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/query_commands.h"

/// The verbs that give orders to a running job. They go to its scaler, where each is an event;
/// those that the master can carry out by itself go there when no scaler answers. Each returns the
/// exit code of the process.
namespace muster::steer {

/// What every order has.
struct OrderOptions {
  QueryOptions query;
  std::string reason;
  bool wait = false;         // until its outcome is known
  uint32_t timeout_s = 300;  // of --wait
};

struct RestartOptions {
  OrderOptions order;
  std::string node;
};
int RestartCommand(const RestartOptions& options);

struct ResizeOptions {
  OrderOptions order;
  std::string node;
  std::string memory;  // as in job files: "512Mi"; "": as it is
  std::string cpus;    // "1.5", "500m"; "": as it is
};
int ResizeCommand(const ResizeOptions& options);

struct ScaleOptions {
  OrderOptions order;
  uint32_t workers = 0;
};
int ScaleCommand(const ScaleOptions& options);

struct DrainOptions {
  QueryOptions query;
  std::string reason;
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

struct RetryOptions {
  QueryOptions query;
  std::vector<std::string> ids;  // "dataset/epoch/index"; empty: all FAILED
};
int RetryCommand(const RetryOptions& options);

int PoliciesCommand(const QueryOptions& options);

struct PausePolicyOptions {
  QueryOptions query;
  std::string reason;
  std::string policy;
};
int PausePolicyCommand(const PausePolicyOptions& options);
int ResumePolicyCommand(const PausePolicyOptions& options);

}  // namespace muster::steer
