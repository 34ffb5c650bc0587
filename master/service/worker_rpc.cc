// WorkerService of proto/control.proto.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "master/service/master_rpc.h"
#include "proto/control.grpc.pb.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
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
      .job_id = job_id,
      .warm_start = job.training.warm_start};
  if (HasGroup(job)) {
    hello.group = true;
    hello.group_directory = job.snapshot_directory;
    hello.group_has_servers = job.ps.replicas > 0;
  }
  sources.Introduce(&hello);
  return hello;
}

/// The answer to an exchange is assembled from bytes, because those of a map are the same for many
/// workers.
using Service =
    v1::WorkerService::WithCallbackMethod_Hello<v1::WorkerService::WithCallbackMethod_RegisterTable<
        v1::WorkerService::WithRawCallbackMethod_Exchange<
            v1::WorkerService::WithRawCallbackMethod_ExchangeGroup<v1::WorkerService::Service>>>>;

/// The answer to an exchange.
struct ExchangeAnswer {
  WorkerExchangeReply reply;
  /// Null: the worker's map is current.
  std::shared_ptr<const MapNews> map;
};

template <typename Message>
absl::StatusOr<Message> Parse(const grpc::ByteBuffer& bytes) {
  if (!bytes.Valid()) return absl::InvalidArgumentError("the request has no message");
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) {
    return absl::InvalidArgumentError("the request cannot be read");
  }
  std::string joined;
  joined.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return fields::Decode<Message>(joined);
}

/// The bytes of the news, which are shared and not copied.
grpc::Slice SliceOf(const std::shared_ptr<const MapNews>& news) {
  const std::string& bytes = news->Encoded();
  const auto release = [](void* kept) {
    delete static_cast<std::shared_ptr<const MapNews>*>(kept);
  };
  return grpc::Slice(const_cast<char*>(bytes.data()), bytes.size(), release,
                     new std::shared_ptr<const MapNews>(news));
}

/// A message may be assembled from pieces, so the fields of the map come after the others.
void Encode(const ExchangeAnswer& answer, grpc::ByteBuffer* response) {
  std::vector<grpc::Slice> slices = {grpc::Slice(fields::Encode(answer.reply))};
  if (answer.map != nullptr) slices.push_back(SliceOf(answer.map));
  *response = grpc::ByteBuffer(slices.data(), slices.size());
}

class WorkerRpc final : public Service {
 public:
  explicit WorkerRpc(RpcContext context) : context_(std::move(context)) {}

  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* call,
                                  const v1::HelloRequest* request,
                                  v1::HelloResponse* response) override {
    absl::Status checked = CheckNodeName("worker", request->worker());
    if (checked.ok()) {
      checked = CheckCaller(*call, context_, MasterService::kWorkers, request->worker(),
                            UnnamedJob::kAccept);
    }
    if (checked.ok()) {
      checked = CheckVersion(fmt::format("the worker SDK of '{}'", request->worker()),
                             request->sdk_version());
    }
    if (checked.ok() && request->incarnation() == 0) {
      checked = absl::InvalidArgumentError("incarnation: 0 is not allowed");
    }
    if (!checked.ok()) return Answer(call, checked);
    return RunOnOwner(
        call, context_,
        [request](MasterCore& core, StepTime at) {
          return core.HelloWorker({request->worker(), request->incarnation()},
                                  StartNumber(request->start()), at);
        },
        [this, response] {
          ToProto(HelloOf(*context_.job, context_.identity.id, *context_.sources), response);
        });
  }

  grpc::ServerUnaryReactor* RegisterTable(grpc::CallbackServerContext* call,
                                          const v1::RegisterTableRequest* request,
                                          v1::RegisterTableResponse* response) override {
    const absl::Status checked = CheckLaterCall(*call);
    if (!checked.ok()) return Answer(call, checked);
    absl::StatusOr<TableSpec> table = FromProto<TableSpec>(request->table());
    if (!table.ok()) return Answer(call, table.status());
    return RunOnOwner(
        call, context_,
        [table = *std::move(table)](MasterCore& core, StepTime at) {
          return core.RegisterTable(table, at);
        },
        [response](TableId id) { response->set_id(id.value()); });
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* call,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override {
    // Checked before the request is read, because calls of another job's workers are ignored.
    absl::Status checked = CheckLaterCall(*call);
    if (!checked.ok()) return Answer(call, checked);
    absl::StatusOr<WorkerExchangeRequest> parsed = Parse<WorkerExchangeRequest>(*request);
    if (!parsed.ok()) return Answer(call, parsed.status());
    checked = CheckNodeName("worker", parsed->worker);
    if (!checked.ok()) return Answer(call, checked);
    auto shared = std::make_shared<const WorkerExchangeRequest>(*std::move(parsed));
    return RunOnOwner(
        call, context_,
        [shared](MasterCore& core, StepTime at) -> absl::StatusOr<ExchangeAnswer> {
          MUSTER_ASSIGN_OR_RETURN(WorkerExchangeReply reply, core.ExchangeWorker(*shared, at));
          return ExchangeAnswer{std::move(reply), core.TellMap(*shared)};
        },
        [this, response](ExchangeAnswer& answer) {
          for (ShardGrant& grant : answer.reply.grants) {
            context_.sources->Describe(grant.shard, &grant.work);
          }
          Encode(answer, response);
        });
  }

  grpc::ServerUnaryReactor* ExchangeGroup(grpc::CallbackServerContext* call,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override {
    absl::Status checked = CheckLaterCall(*call);
    if (!checked.ok()) return Answer(call, checked);
    absl::StatusOr<GroupExchangeRequest> parsed = Parse<GroupExchangeRequest>(*request);
    if (!parsed.ok()) return Answer(call, parsed.status());
    checked = CheckNodeName("worker", parsed->worker);
    if (!checked.ok()) return Answer(call, checked);
    auto kept = std::make_shared<GroupCall>(GroupCall{*std::move(parsed), {}, {}, {}});
    return KeepOnOwner(
        call, context_,
        [kept](MasterCore& core, StepTime at) {
          kept->since = at.now;
          return core.ExchangeGroup(kept->request, at);
        },
        [kept](MasterCore& core, StepTime at) {
          if (!core.IsGroupCallDue(kept->request, kept->since, at.now)) return false;
          kept->reply = core.GroupReplyFor({kept->request.worker, kept->request.incarnation});
          kept->ahead = core.GroupAhead();
          return true;
        },
        [this, kept, response] {
          GroupExchangeReply& reply = kept->reply;
          if (reply.work.has_value()) {
            context_.sources->Describe(reply.work->shard, &reply.work->work);
          }
          if (reply.ahead.has_value()) context_.sources->Describe(*kept->ahead, &*reply.ahead);
          const grpc::Slice slice(fields::Encode(reply));
          *response = grpc::ByteBuffer(&slice, 1);
        });
  }

 private:
  /// A call of a member of a group, until its answer.
  struct GroupCall {
    GroupExchangeRequest request;
    TimePoint since;
    GroupExchangeReply reply;
    std::optional<ShardId> ahead;
  };
  /// After its Hello, a worker names the job.
  absl::Status CheckLaterCall(const grpc::CallbackServerContext& call) const {
    return CheckCaller(call, context_, MasterService::kWorkers, "the worker", UnnamedJob::kRefuse);
  }

  const RpcContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerRpc(const RpcContext& context) {
  return std::make_unique<WorkerRpc>(context);
}

}  // namespace muster
