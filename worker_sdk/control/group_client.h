#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/messages/group_control.h"
#include "proto/messages/job_identity.h"
#include "worker_sdk/control/grpc_client.h"

namespace muster::sdk {

/// A member's exchanges with the master. They run on an event loop, and may overlap. Belongs to the
/// loop's thread.
class GroupClient {
 public:
  /// Errors are those of GrpcClient, or kInvalidArgument for an answer that cannot be decoded.
  /// kAlreadyExists means that the master has got a newer call.
  using Done = std::function<void(absl::StatusOr<GroupExchangeReply>)>;

  /// Every call names `job`. `tls` is for GrpcClient.
  GroupClient(boost::asio::io_context* loop, std::string address, const JobIdentity& job,
              net::TlsContextSource tls = {});
  /// The master keeps the call until it has news, so `timeout` must be longer than the heartbeat
  /// interval of the group. The loop calls `done` once, never within Exchange.
  void Exchange(const GroupExchangeRequest& request, std::chrono::milliseconds timeout, Done done);

 private:
  GrpcClient client_;
};

}  // namespace muster::sdk
