#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/ask/query_commands.h"
#include "scaler/model/orders.h"

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

/// An order that only the scaler can carry out.
struct GivenOrder {
  OrderOptions options;
  absl::StatusOr<scaler::Order> order;  // an error: what the line says is none
};
int OrderCommand(const GivenOrder& given);

struct DrainOptions {
  QueryOptions query;
  std::string reason;
  std::string node;  // "": the whole job
  bool undo = false;
  bool wait = false;       // until the node is drained
  uint32_t timeout_s = 0;  // of the node's drain; 0: the job file's
};
int DrainCommand(const DrainOptions& options);

struct RetryOptions {
  QueryOptions query;
  std::vector<std::string> ids;  // "dataset/epoch/index"; empty: all FAILED
};
int RetryCommand(const RetryOptions& options);

int PoliciesCommand(const QueryOptions& options);

}  // namespace muster::steer
