#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "proto/messages/group_control.h"
#include "proto/messages/job_identity.h"
#include "proto/messages/worker_hello.h"
#include "worker_sdk/control/grpc_channel.h"

namespace muster::sdk {

/// True for errors of a call that a retry cannot fix.
bool IsPermanent(const absl::Status& status);

/// WorkerService of the master, as a worker calls it. Blocking; for one thread (not thread-safe).
/// Every call has a deadline and may be repeated. Errors are those of GrpcChannel::Call, or
/// kInvalidArgument for an answer that cannot be decoded. A master of another job answers
/// kUnavailable (proto/messages/job_identity.h).
class ControlClient {
 public:
  /// `job`: which every call names, as far as it is known; Hello tells the rest. `tls`: as for
  /// GrpcChannel.
  ControlClient(std::string address, std::string worker, const JobIdentity& job,
                net::TlsContextSource tls = {});

  /// `start`: the start number of this process, 1 for the first start of this worker in the
  /// supervisor's run; 0: not known.
  absl::StatusOr<HelloResponse> Hello(uint64_t incarnation, uint64_t start,
                                      std::chrono::milliseconds timeout);
  absl::StatusOr<TableId> RegisterTable(const TableSpec& table, std::chrono::milliseconds timeout);
  absl::StatusOr<WorkerExchangeReply> Exchange(const WorkerExchangeRequest& request,
                                               std::chrono::milliseconds timeout);
  /// Of a job with a group. The master keeps the call until it has news: `timeout` must be longer
  /// than the heartbeat interval of the group. kAlreadyExists: a newer call was heard before.
  absl::StatusOr<GroupExchangeReply> ExchangeGroup(const GroupExchangeRequest& request,
                                                   std::chrono::milliseconds timeout);

 private:
  void SetJob(const JobIdentity& job);

  GrpcChannel channel_;
  std::string worker_;
};

}  // namespace muster::sdk
