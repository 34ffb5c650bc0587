#include "admin/admin_client.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <set>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/token_file.h"
#include "proto/admin.grpc.pb.h"
#include "proto/fields/generated.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/grpc_status.h"
#include "proto/rpc/metadata.h"
#include "security/rpc/grpc_credentials.h"

namespace muster {
namespace {

constexpr int kMessageBytesMax = 256 << 20;

/// The error says that our certificate cannot be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const MasterTarget& target) {
  grpc::ChannelArguments arguments;
  // Short, because a restarted master answers soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // This is the time limit of one attempt to connect. On a busy machine, a running master may be
  // slow to answer. If there is no master, the connection is refused at once.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  // Channels share nothing, so the back-off of one caller does not slow down another.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  QuietGrpc();
  InsideJob(&arguments);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (target.tls.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(
        credentials, MakeGrpcChannelCredentials({.files = *target.tls, .ours = {target.job.id, {}}},
                                                Role::kMaster, SystemClock().Wall(), &arguments));
  }
  return grpc::CreateCustomChannel(ChannelTarget(target.address), credentials, arguments);
}

class GrpcAdminClient final : public AdminClient {
 public:
  GrpcAdminClient(MasterTarget target, std::chrono::milliseconds deadline, WhenAway when_away)
      : target_(std::move(target)), deadline_(deadline), when_away_(when_away) {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(target_);
    usable_ = channel.status();
    if (channel.ok()) stub_ = v1::AdminService::NewStub(*channel);
  }

  void End() override {
    MutexLock lock(&mutex_);
    ended_ = true;
    for (grpc::ClientContext* const call : in_flight_) call->TryCancel();
  }

  absl::StatusOr<JobStatus> GetStatus() override {
    v1::GetStatusRequest request;
    request.set_joiner(target_.joiner);
    return Read<JobStatus>(Call<v1::JobStatus>(&Stub::GetStatus, request, deadline_));
  }
  absl::StatusOr<ShardPage> ListShards(const v1::ListShardsRequest& request) override {
    return Read<ShardPage>(Call<v1::ListShardsResponse>(&Stub::ListShards, request, deadline_));
  }
  absl::StatusOr<ShardMap> GetShardMap(const v1::GetShardMapRequest& request) override {
    return Read<ShardMap>(Call<v1::GetShardMapResponse>(&Stub::GetShardMap, request, deadline_));
  }
  absl::StatusOr<v1::RetryShardsResponse> RetryShards(
      const v1::RetryShardsRequest& request) override {
    return Call<v1::RetryShardsResponse>(&Stub::RetryShards, request, deadline_);
  }
  absl::StatusOr<MasterEvents> ListEvents(const v1::ListEventsRequest& request) override {
    return Read<MasterEvents>(Call<v1::ListEventsResponse>(&Stub::ListEvents, request, deadline_));
  }
  absl::Status ReportNode(const v1::ReportNodeRequest& request) override {
    return Call<v1::ReportNodeResponse>(&Stub::ReportNode, request, deadline_).status();
  }
  absl::StatusOr<v1::JoinNodeResponse> JoinNode(const v1::JoinNodeRequest& request) override {
    return Call<v1::JoinNodeResponse>(&Stub::JoinNode, request, deadline_);
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
  absl::StatusOr<PartitionList> ListPartitions(const v1::ListPartitionsRequest& request) override {
    return Read<PartitionList>(
        Call<v1::ListPartitionsResponse>(&Stub::ListPartitions, request, deadline_));
  }
  absl::Status Cancel(const v1::CancelRequest& request) override {
    return Call<v1::CancelResponse>(&Stub::Cancel, request, deadline_).status();
  }
  absl::StatusOr<v1::GetManifestResponse> GetManifest(
      const v1::GetManifestRequest& request) override {
    return Call<v1::GetManifestResponse>(&Stub::GetManifest, request, deadline_ * 10);
  }

 private:
  using Stub = v1::AdminService::Stub;

  /// Converts the master's answer to the model.
  template <typename Model, typename Response>
  absl::StatusOr<Model> Read(const absl::StatusOr<Response>& response) const {
    MUSTER_RETURN_IF_ERROR(response.status());
    absl::StatusOr<Model> model = FromProto<Model>(*response);
    if (model.ok()) return model;
    return Annotate(model.status(),
                    fmt::format("the master at {} gave a bad answer", target_.address));
  }

  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, std::chrono::milliseconds deadline) {
    MUSTER_RETURN_IF_ERROR(usable_);
    grpc::ClientContext context;
    const JobIdentity& job = target_.job;
    if (!job.id.empty()) context.AddMetadata(kJobIdMetadata, job.id);
    if (!job.name.empty()) context.AddMetadata(kJobNameMetadata, job.name);
    // The master is called even without a token. So the caller learns if the master is there, and
    // the master creates the token file if it can.
    const absl::StatusOr<std::string> token = LoadToken(target_.token_file);
    if (token.ok()) context.AddMetadata(kTokenMetadata, *token);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_millis(deadline.count(), GPR_TIMESPAN)));
    // A call that fails at once does not poll. Then only gRPC's backup poller would notice the
    // channel's next attempt to connect, seconds later.
    context.set_wait_for_ready(when_away_ == WhenAway::kWait);
    Response response;
    MUSTER_RETURN_IF_ERROR(Begin(&context));
    const grpc::Status status = ((*stub_).*method)(&context, request, &response);
    Over(&context);
    if (status.ok()) return response;
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      return Refused(FromGrpcStatus(status), token.status());
    }
    return FromGrpcStatus(
        status, {.name = fmt::format("the master at {}", target_.address), .deadline = deadline});
  }

  absl::Status Begin(grpc::ClientContext* call) {
    MutexLock lock(&mutex_);
    if (ended_) return absl::CancelledError("the caller has ended");
    in_flight_.insert(call);
    return absl::OkStatus();
  }
  void Over(grpc::ClientContext* call) {
    MutexLock lock(&mutex_);
    in_flight_.erase(call);
  }

  /// The error of a call that the master refused, with or without a token.
  absl::Status Refused(const absl::Status& refusal, const absl::Status& token) const {
    if (token.ok()) {
      return Annotate(refusal, fmt::format("the master at {}, asked with the token in {}",
                                           target_.address, target_.token_file));
    }
    if (absl::IsNotFound(token)) {
      return Annotate(refusal, fmt::format("the master at {}", target_.address));
    }
    return absl::UnauthenticatedError(fmt::format(
        "the job's master cannot be asked without the job's token: {}", Message(token)));
  }

  const MasterTarget target_;
  const std::chrono::milliseconds deadline_;
  const WhenAway when_away_;
  /// Why there is no stub; OK if there is one.
  absl::Status usable_;
  std::unique_ptr<Stub> stub_;
  Mutex mutex_;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> in_flight_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<AdminClient> MakeAdminClient(MasterTarget target,
                                             std::chrono::milliseconds deadline,
                                             WhenAway when_away) {
  return std::make_unique<GrpcAdminClient>(std::move(target), deadline, when_away);
}

bool IsUnreachable(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kCancelled;  // a server that stops sends it
}

}  // namespace muster
