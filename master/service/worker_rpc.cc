// WorkerService of proto/control.proto.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/status.h"
#include "master/service/master_rpc.h"
#include "proto/control.grpc.pb.h"
#include "sharding/codec/control_codec.h"

namespace muster {
namespace {

void FillHello(const JobSpec& job, const std::string& job_id, v1::HelloResponse* response) {
  response->set_job_id(job_id);
  response->set_job(job.name);
  response->set_seed(job.seed);
  response->set_partition_count(job.partitions);
  response->set_heartbeat_interval_ms(static_cast<uint64_t>(job.leases.heartbeat_interval.count()));
  response->set_unacknowledged_minibatches_max(job.training.unacknowledged_minibatches_max);
  response->set_prefetch_minibatches(job.training.prefetch_minibatches);
  response->set_shards_ahead(job.training.shards_ahead);
  response->set_wire_encoding(job.training.wire_encoding);
  response->set_lease_duration_ms(static_cast<uint64_t>(job.leases.duration.count()));
  for (const DatasetSpec& dataset : job.datasets) {
    if (!dataset.is_stream()) continue;
    v1::TopicSource* topic = response->add_topics();
    topic->set_dataset(dataset.name);
    for (const std::string& broker : dataset.kafka.brokers) topic->add_brokers(broker);
    topic->mutable_properties()->insert(dataset.kafka.properties.begin(),
                                        dataset.kafka.properties.end());
    topic->mutable_secrets()->insert(dataset.kafka.secrets.begin(), dataset.kafka.secrets.end());
    topic->set_group(GroupOf(job));
    topic->set_record_bytes_max(dataset.kafka.record_bytes_max);
    topic->set_dead_letter_topic(dataset.kafka.dead_letter_topic);
  }
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
    return RunOnOwner(call, context_.loop,
                      [this, request, response](MasterCore& core, StepTime at) {
                        FillHello(*context_.job, context_.identity.id, response);
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
    absl::StatusOr<TableSpec> table = FromProto(request->table());
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
    absl::StatusOr<WorkerExchangeRequest> parsed = FromProto(*request);
    if (!parsed.ok()) return Answer(call, parsed.status());
    auto shared = std::make_shared<const WorkerExchangeRequest>(*std::move(parsed));
    return RunOnOwner(call, context_.loop, [this, shared, response](MasterCore& core, StepTime at) {
      MUSTER_ASSIGN_OR_RETURN(WorkerExchangeReply reply, core.ExchangeWorker(*shared, at));
      for (ShardGrant& grant : reply.grants) {
        if (!grant.work.stream.has_value()) grant.work = context_.work_of(grant.shard);
      }
      ToProto(reply, response);
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
