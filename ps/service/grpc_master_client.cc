#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "proto/control.grpc.pb.h"
#include "proto/fields/generated.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/grpc_status.h"
#include "ps/service/master_client.h"
#include "security/rpc/grpc_credentials.h"

namespace muster::ps {
namespace {

constexpr std::chrono::seconds kDeadline{2};
/// The answer to a registration can own every partition of a large job.
constexpr int kMessageBytesMax = 256 << 20;

grpc::ChannelArguments ChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  // Finds a restarted master at once, not after gRPC's default of minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // How long one attempt may take (gRPC's name misleads): a busy machine may need a while to
  // answer.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  InsideJob(&arguments);
  return arguments;
}

class GrpcMasterClient final : public MasterClient {
 public:
  GrpcMasterClient(std::string job_id, const std::shared_ptr<grpc::Channel>& channel)
      : job_{std::move(job_id), ""}, stub_(v1::ServerService::NewStub(channel)) {}

  absl::StatusOr<RegisterServerReply> Register(const RegisterServerRequest& request) override {
    v1::RegisterServerRequest message;
    ToProto(request, &message);
    v1::RegisterServerReply answer;
    MUSTER_RETURN_IF_ERROR(Call(WhenAway::kWait, [&](grpc::ClientContext* context) {
      return stub_->Register(context, message, &answer);
    }));
    MUSTER_ASSIGN_OR_RETURN(RegisterServerReply reply, FromProto<RegisterServerReply>(answer));
    if (reply.partition_count == 0 || reply.partition_count > most::kPartitions) {
      return absl::InvalidArgumentError(
          fmt::format("the master says that the job has {} partitions, but the limit is {}",
                      reply.partition_count, most::kPartitions));
    }
    MUSTER_RETURN_IF_ERROR(CheckJobId("the id in the master's answer", reply.job_id));
    if (reply.job_id.empty()) {
      return absl::InvalidArgumentError(
          "the master does not say to which job it belongs; build both from the same release");
    }
    job_ = JobOf(reply);
    return reply;
  }

  absl::StatusOr<ServerExchangeReply> Exchange(const ServerExchangeRequest& request) override {
    v1::ServerExchangeRequest message;
    ToProto(request, &message);
    v1::ServerExchangeReply reply;
    const WhenAway when_away = request.leaving ? WhenAway::kFail : WhenAway::kWait;
    MUSTER_RETURN_IF_ERROR(Call(when_away, [&](grpc::ClientContext* context) {
      return stub_->Exchange(context, message, &reply);
    }));
    return FromProto<ServerExchangeReply>(reply);
  }

  void Cancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  enum class WhenAway : uint8_t { kWait, kFail };

  template <typename F>
  absl::Status Call(WhenAway when_away, F&& call) {
    grpc::ClientContext context;
    if (!job_.id.empty()) context.AddMetadata(kJobIdMetadata, job_.id);
    if (!job_.name.empty()) context.AddMetadata(kJobNameMetadata, job_.name);
    // A call that fails at once does not poll, and then only gRPC's timer of 5 s notices the new
    // connection.
    context.set_wait_for_ready(when_away == WhenAway::kWait);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_seconds(kDeadline.count(), GPR_TIMESPAN)));
    {
      MutexLock lock(&mutex_);
      if (cancelled_) return absl::CancelledError("the server is stopping");
      context_ = &context;
    }
    const grpc::Status status = call(&context);
    MutexLock lock(&mutex_);
    context_ = nullptr;
    // A master that ends cancels its calls. So only report kCancelled if Cancel() was called.
    if (status.error_code() == grpc::StatusCode::CANCELLED && !cancelled_) {
      return absl::UnavailableError("the master ended before it answered");
    }
    return FromGrpcStatus(status, {.name = "the master", .deadline = kDeadline});
  }

  JobIdentity job_;  // of the thread that calls
  std::unique_ptr<v1::ServerService::Stub> stub_;
  Mutex mutex_;
  bool cancelled_ MUSTER_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ MUSTER_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MasterClient>> MakeGrpcMasterClient(const MasterAddress& master,
                                                                   const Clock& clock) {
  grpc::ChannelArguments arguments = ChannelArguments();
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (master.tls.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(
        credentials,
        MakeGrpcChannelCredentials({.files = *master.tls, .ours = {master.job_id, Role::kServer}},
                                   Role::kMaster, clock.Wall(), &arguments));
  }
  return std::make_unique<GrpcMasterClient>(
      master.job_id,
      grpc::CreateCustomChannel(ChannelTarget(master.address), credentials, arguments));
}

}  // namespace muster::ps
