#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/ask/query_commands.h"
#include "scaler/model/orders.h"

/// The verbs that give orders to a running job. Orders go to the job's scaler, which records each
/// as an event. If no scaler answers, orders that the master can carry out by itself go to the
/// master. Each verb returns the exit code of the process.
namespace muster::steer {

/// Options of every order.
struct OrderOptions {
  QueryOptions query;
  std::string reason;
  bool wait = false;         // whether to wait until the outcome is known
  uint32_t timeout_s = 300;  // of --wait
};

/// An order that only the scaler can carry out.
struct GivenOrder {
  OrderOptions options;
  absl::StatusOr<scaler::Order> order;  // an error if the command line gives no order
};
int OrderCommand(const GivenOrder& given);

struct DrainOptions {
  QueryOptions query;
  std::string reason;
  std::string node;  // "": the whole job
  bool undo = false;
  bool wait = false;       // whether to wait until the node is drained
  uint32_t timeout_s = 0;  // for the node's drain; 0: that of the job file
};
int DrainCommand(const DrainOptions& options);

struct RetryOptions {
  QueryOptions query;
  std::vector<std::string> ids;  // "dataset/epoch/index"; empty: all FAILED
};
int RetryCommand(const RetryOptions& options);

int PoliciesCommand(const QueryOptions& options);

}  // namespace muster::steer
