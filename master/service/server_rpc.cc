// ServerService of proto/control.proto.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/status.h"
#include "master/service/master_rpc.h"
#include "proto/control.grpc.pb.h"
#include "proto/fields/generated.h"

namespace muster {
namespace {

class ServerRpc final : public v1::ServerService::CallbackService {
 public:
  explicit ServerRpc(RpcContext context) : context_(std::move(context)) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* call,
                                     const v1::RegisterServerRequest* request,
                                     v1::RegisterServerReply* response) override {
    absl::Status checked = CheckNodeName("name", request->name());
    if (checked.ok()) {
      checked = CheckCaller(*call, context_, MasterService::kServers, request->name(),
                            UnnamedJob::kAccept);
    }
    if (checked.ok()) {
      checked = CheckVersion(fmt::format("the server '{}'", request->name()), request->version());
    }
    if (!checked.ok()) return Answer(call, checked);
    auto parsed = FromProto<RegisterServerRequest>(*request);
    if (!parsed.ok()) return Answer(call, parsed.status());
    return RunOnOwner(
        call, context_,
        [parsed = *std::move(parsed)](MasterCore& core, StepTime at) {
          return core.RegisterServer(parsed, at);
        },
        [this, response](RegisterServerReply& reply) {
          const JobSpec& job = *context_.job;
          reply.job = job.name;
          reply.job_id = context_.identity.id;
          reply.seed = job.seed;
          reply.partition_count = job.partitions;
          reply.snapshot_directory = job.snapshot_directory;
          reply.heartbeat_interval = job.servers.heartbeat_interval;
          ToProto(reply, response);
        });
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* call,
                                     const v1::ServerExchangeRequest* request,
                                     v1::ServerExchangeReply* response) override {
    const absl::Status checked =
        CheckCaller(*call, context_, MasterService::kServers, fmt::format("ps-{}", request->id()),
                    UnnamedJob::kRefuse);
    if (!checked.ok()) return Answer(call, checked);
    auto parsed = FromProto<ServerExchangeRequest>(*request);
    if (!parsed.ok()) return Answer(call, parsed.status());
    auto shared = std::make_shared<const ServerExchangeRequest>(*std::move(parsed));
    return RunOnOwner(
        call, context_,
        [shared](MasterCore& core, StepTime at) -> absl::StatusOr<ServerExchangeReply> {
          return core.ExchangeServer(*shared, at);
        },
        [response](const ServerExchangeReply& reply) { ToProto(reply, response); });
  }

 private:
  const RpcContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeServerRpc(const RpcContext& context) {
  return std::make_unique<ServerRpc>(context);
}

}  // namespace muster
