// WorkerService of proto/control.proto.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "master/service/master_rpc.h"
#include "proto/control.grpc.pb.h"
#include "proto/fields/generated.h"
#include "proto/messages/worker_hello.h"

namespace muster {
namespace {

HelloResponse HelloOf(const JobSpec& job, const std::string& job_id, const SourceCatalog& sources) {
  HelloResponse hello{
      .job = job.name,
      .seed = job.seed,
      .partition_count = job.partitions,
      .heartbeat_interval_ms = static_cast<uint64_t>(job.leases.heartbeat_interval.count()),
      .unacknowledged_minibatches_max = job.training.unacknowledged_minibatches_max,
      .prefetch_minibatches = job.training.prefetch_minibatches,
      .shards_ahead = job.training.shards_ahead,
      .wire_encoding = job.training.wire_encoding,
      .lease_duration_ms = static_cast<uint64_t>(job.leases.duration.count()),
      .job_id = job_id};
  sources.Introduce(&hello);
  return hello;
}

class WorkerRpc final : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerRpc(RpcContext context) : context_(std::move(context)) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* call,
                                  const v1::HelloRequest* request,
                                  v1::HelloResponse* response) override {
    absl::Status checked = Check(*call, request->worker(), UnnamedJob::kAccept);
    if (checked.ok()) {
      checked = CheckVersion(fmt::format("the worker SDK of '{}'", request->worker()),
                             request->sdk_version());
    }
    if (checked.ok() && request->incarnation() == 0) {
      checked = absl::InvalidArgumentError("incarnation: 0 is not one");
    }
    if (!checked.ok()) return Answer(call, checked);
    return RunOnOwner(
        call, context_.loop, [this, request, response](MasterCore& core, StepTime at) {
          ToProto(HelloOf(*context_.job, context_.identity.id, *context_.sources), response);
          return core.HelloWorker({request->worker(), request->incarnation()},
                                  StartNumber(request->start()), at);
        });
  }

  grpc::ServerUnaryReactor* RegisterTable(grpc::CallbackServerContext* call,
                                          const v1::RegisterTableRequest* request,
                                          v1::RegisterTableResponse* response) override {
    const absl::Status checked =
        CheckJob(*call, context_.identity, "the worker", UnnamedJob::kRefuse);
    if (!checked.ok()) return Answer(call, checked);
    absl::StatusOr<TableSpec> table = FromProto<TableSpec>(request->table());
    if (!table.ok()) return Answer(call, table.status());
    return RunOnOwner(
        call, context_.loop,
        [table = *std::move(table), response](MasterCore& core, StepTime at) -> absl::Status {
          MUSTER_ASSIGN_OR_RETURN(const TableId id, core.RegisterTable(table, at));
          response->set_id(id.value());
          return absl::OkStatus();
        });
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* call,
                                     const v1::WorkerExchangeRequest* request,
                                     v1::WorkerExchangeReply* response) override {
    if (absl::Status checked = Check(*call, request->worker(), UnnamedJob::kRefuse);
        !checked.ok()) {
      return Answer(call, checked);
    }
    auto parsed = FromProto<WorkerExchangeRequest>(*request);
    if (!parsed.ok()) return Answer(call, parsed.status());
    auto shared = std::make_shared<const WorkerExchangeRequest>(*std::move(parsed));
    return RunOnOwner(call, context_.loop, [this, shared, response](MasterCore& core, StepTime at) {
      MUSTER_ASSIGN_OR_RETURN(WorkerExchangeReply reply, core.ExchangeWorker(*shared, at));
      for (ShardGrant& grant : reply.grants) {
        context_.sources->Describe(grant.shard, &grant.work);
      }
      ToProto(reply, response);
      if (const auto news = core.TellMap(*shared)) {
        MUSTER_CHECK(response->MergeFromString(news->Encoded()));
      }
      return absl::OkStatus();
    });
  }

 private:
  absl::Status Check(const grpc::CallbackServerContext& call, const std::string& worker,
                     UnnamedJob unnamed) const {
    MUSTER_RETURN_IF_ERROR(CheckNodeName("worker", worker));
    return CheckJob(call, context_.identity, worker, unnamed);
  }

  const RpcContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerRpc(const RpcContext& context) {
  return std::make_unique<WorkerRpc>(context);
}

}  // namespace muster
