#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "proto/messages/job_identity.h"
#include "proto/messages/worker_hello.h"
#include "worker_sdk/control/grpc_channel.h"

namespace muster::sdk {

/// True for errors of a call that a retry cannot fix.
bool IsPermanent(const absl::Status& status);

/// The metadata of every call. With it, a master of another job can refuse the call.
std::vector<std::pair<std::string, std::string>> MetadataOf(const JobIdentity& job);

/// The worker's client for the master's WorkerService. Calls block. For one thread (not
/// thread-safe). Every call has a deadline and may be repeated. Errors are those of GrpcClient, or
/// kInvalidArgument for an answer that cannot be decoded. A master of another job answers
/// kUnavailable (proto/messages/job_identity.h).
class ControlClient {
 public:
  /// Every call names `job` as far as it is known; Hello returns the rest. `tls` is for
  /// GrpcChannel.
  ControlClient(std::string address, std::string worker, const JobIdentity& job,
                net::TlsContextSource tls = {});

  /// `start` is the start number of this process: 1 for the first start of this worker in the
  /// supervisor's run, 0 if it is not known.
  absl::StatusOr<HelloResponse> Hello(uint64_t incarnation, uint64_t start,
                                      std::chrono::milliseconds timeout);
  absl::StatusOr<TableId> RegisterTable(const TableSpec& table, std::chrono::milliseconds timeout);
  absl::StatusOr<WorkerExchangeReply> Exchange(const WorkerExchangeRequest& request,
                                               std::chrono::milliseconds timeout);

 private:
  GrpcChannel channel_;
  std::string worker_;
};

}  // namespace muster::sdk
