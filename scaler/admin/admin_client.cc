#include "scaler/admin/admin_client.h"

#include <grpcpp/grpcpp.h>

#include "base/status.h"
#include "proto/admin.grpc.pb.h"
#include "proto/rpc/grpc_status.h"

namespace muster {
namespace {

constexpr int kMessageBytesMax = 256 << 20;

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  // A master that was started again answers within moments: look often.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // What one attempt to connect gets: on a machine that is short of time a master that is there
  // needs more than moments to greet. One that is not there refuses at once.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Channels share nothing, so that one caller's back-off does not slow another's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // Addresses are numbers: nothing is to be resolved, nor to be waited for before it is resolved
  // again.
  constexpr std::string_view kLocalhost = "localhost:";
  const std::string numeric =
      address.starts_with(kLocalhost) ? "127.0.0.1:" + address.substr(kLocalhost.size()) : address;
  return grpc::CreateCustomChannel((numeric.starts_with('[') ? "ipv6:" : "ipv4:") + numeric,
                                   grpc::InsecureChannelCredentials(), arguments);
}

class GrpcAdminClient final : public AdminClient {
 public:
  GrpcAdminClient(const std::string& address, const JobIdentity& job,
                  std::chrono::milliseconds deadline, WhenAway when_away)
      : address_(address),
        job_(job),
        deadline_(deadline),
        when_away_(when_away),
        stub_(v1::AdminService::NewStub(MakeChannel(address))) {}

  absl::StatusOr<v1::JobStatus> GetStatus() override {
    return Call<v1::JobStatus>(&Stub::GetStatus, v1::GetStatusRequest(), deadline_);
  }
  absl::StatusOr<v1::ListShardsResponse> ListShards(const v1::ListShardsRequest& request) override {
    return Call<v1::ListShardsResponse>(&Stub::ListShards, request, deadline_);
  }
  absl::StatusOr<v1::GetShardMapResponse> GetShardMap(
      const v1::GetShardMapRequest& request) override {
    return Call<v1::GetShardMapResponse>(&Stub::GetShardMap, request, deadline_);
  }
  absl::StatusOr<v1::RetryShardsResponse> RetryShards(
      const v1::RetryShardsRequest& request) override {
    return Call<v1::RetryShardsResponse>(&Stub::RetryShards, request, deadline_);
  }
  absl::StatusOr<v1::ListEventsResponse> ListEvents(const v1::ListEventsRequest& request) override {
    return Call<v1::ListEventsResponse>(&Stub::ListEvents, request, deadline_);
  }
  absl::Status ReportNode(const v1::ReportNodeRequest& request) override {
    return Call<v1::ReportNodeResponse>(&Stub::ReportNode, request, deadline_).status();
  }
  absl::Status Drain() override {
    return Call<v1::DrainResponse>(&Stub::Drain, v1::DrainRequest(), deadline_).status();
  }
  absl::StatusOr<v1::DrainNodeResponse> DrainNode(const v1::DrainNodeRequest& request) override {
    return Call<v1::DrainNodeResponse>(&Stub::DrainNode, request, deadline_);
  }
  absl::Status ResumeNode(const v1::ResumeNodeRequest& request) override {
    return Call<v1::ResumeNodeResponse>(&Stub::ResumeNode, request, deadline_).status();
  }
  absl::StatusOr<v1::ListPartitionsResponse> ListPartitions(
      const v1::ListPartitionsRequest& request) override {
    return Call<v1::ListPartitionsResponse>(&Stub::ListPartitions, request, deadline_);
  }
  absl::Status Cancel(const v1::CancelRequest& request) override {
    return Call<v1::CancelResponse>(&Stub::Cancel, request, deadline_).status();
  }
  absl::StatusOr<v1::GetManifestResponse> GetManifest() override {
    return Call<v1::GetManifestResponse>(&Stub::GetManifest, v1::GetManifestRequest(),
                                         deadline_ * 10);
  }

 private:
  using Stub = v1::AdminService::Stub;

  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, std::chrono::milliseconds deadline) {
    grpc::ClientContext context;
    if (!job_.id.empty()) context.AddMetadata(kJobIdMetadata, job_.id);
    if (!job_.name.empty()) context.AddMetadata(kJobNameMetadata, job_.name);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_millis(deadline.count(), GPR_TIMESPAN)));
    // A call that fails at once does not poll: the channel's next attempt to connect would be
    // noticed by gRPC's backup poller alone, seconds later.
    context.set_wait_for_ready(when_away_ == WhenAway::kWait);
    Response response;
    const grpc::Status status = ((*stub_).*method)(&context, request, &response);
    if (!status.ok()) {
      return Annotate(FromGrpcStatus(status), fmt::format("the master at {}", address_));
    }
    return response;
  }

  const std::string address_;
  const JobIdentity job_;
  const std::chrono::milliseconds deadline_;
  const WhenAway when_away_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

std::unique_ptr<AdminClient> MakeAdminClient(const std::string& address, const JobIdentity& job,
                                             std::chrono::milliseconds deadline,
                                             WhenAway when_away) {
  return std::make_unique<GrpcAdminClient>(address, job, deadline, when_away);
}

bool IsUnreachable(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kCancelled;  // by a server that stops
}

}  // namespace muster
