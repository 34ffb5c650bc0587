// AdminService of proto/admin.proto.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "master/core/nodes/joining.h"
#include "master/service/admin_answers.h"
#include "master/service/manifest_answers.h"
#include "master/service/master_rpc.h"
#include "proto/admin.grpc.pb.h"
#include "proto/fields/generated.h"

namespace muster {
namespace {

constexpr int kRetryMax = 100'000;
constexpr size_t kReasonBytesMax = 4'096;
constexpr size_t kHostBytesMax = 253;

/// What is reported, and its cause: `what` and `cause`.
absl::Status ParseWhat(const v1::ReportNodeRequest& request, NodeReport* report) {
  const std::string& cause = request.cause();
  bool known = true;
  if (request.what() == "started") {
    report->what = NodeReport::What::kStarted;
  } else if (request.what() == "exited") {
    report->what = NodeReport::What::kExited;
    known = cause.empty() || FromWord(cause, &report->disruption);
  } else if (request.what() == "held") {
    report->what = NodeReport::What::kHeld;
    known = cause.empty() || FromWord(cause, &report->wait);
  } else if (request.what() == "resized") {
    report->what = NodeReport::What::kResized;
    known = FromWord(cause, &report->resize_answer);
  } else {
    return absl::InvalidArgumentError(fmt::format(
        "what: expected started, exited, held or resized, got '{}'", request.what().substr(0, 64)));
  }
  if (known) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("cause: '{}' is no cause of '{}'", cause.substr(0, 64), request.what()));
}

absl::StatusOr<NodeReport> ParseReport(const v1::ReportNodeRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckNodeName("node", request.node()));
  NodeReport report;
  report.node = request.node();
  if (!FromWord(request.role(), &report.role)) {
    return absl::InvalidArgumentError(fmt::format(
        "role: expected worker, ps, master or scaler, got '{}'", request.role().substr(0, 64)));
  }
  MUSTER_RETURN_IF_ERROR(ParseWhat(request, &report));
  if (request.start() == 0) {
    return absl::InvalidArgumentError(
        fmt::format("start: node '{}' has start 0, but starts count from 1", request.node()));
  }
  report.start = StartNumber(request.start());
  report.pid = request.pid();
  report.signal = request.signal();
  report.exit_code = request.exit_code();
  report.computing_token = LeaseToken::FromValue(request.computing_token());
  report.minibatches_started = request.minibatches_started();
  report.incarnation = request.incarnation();
  report.text = ValidUtf8(request.text(), kReasonBytesMax);
  report.host = ValidUtf8(request.host(), kHostBytesMax);
  return report;
}

absl::StatusOr<JoinWish> ParseJoin(const v1::JoinNodeRequest& request) {
  JoinWish wish{.role = NodeRole::kWorker,
                .name = request.name(),
                .host = ValidUtf8(request.host(), kHostBytesMax),
                .joiner = request.joiner().substr(0, kHostBytesMax)};
  if (!wish.name.empty()) MUSTER_RETURN_IF_ERROR(CheckNodeName("name", wish.name));
  if (!FromWord(request.role(), &wish.role)) {
    return absl::InvalidArgumentError(
        fmt::format("role: expected worker or ps, got '{}'", request.role().substr(0, 64)));
  }
  return wish;
}

struct JoinFacts {
  Joining joining;
  std::string run_id;
};

/// What the node needs from the job file, and no more: the file has paths and environments of this
/// machine.
void FillJoin(const JoinFacts& facts, const RpcContext& context, v1::JoinNodeResponse* response) {
  const JobSpec& job = *context.job;
  response->set_node(facts.joining.name);
  response->set_job(context.identity.name);
  response->set_job_id(context.identity.id);
  response->set_run_id(facts.run_id);
  response->set_first_start(facts.joining.first_start.value());
  response->set_server_threads(job.servers.threads);
  response->set_drain_timeout_ms(static_cast<uint64_t>(job.drain_timeout.count()));
  response->set_crash_loop_exits(job.restarts.crash_loop_exits);
  response->set_backoff_initial_ms(static_cast<uint64_t>(job.restarts.backoff_initial.count()));
  response->set_backoff_max_ms(static_cast<uint64_t>(job.restarts.backoff_max.count()));
  response->set_data_root(job.base_directory);
}

constexpr uint64_t kDrainTimeoutMaxMs = 24 * 3'600 * 1'000;

absl::Status CheckDrain(const v1::DrainNodeRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckNodeName("node", request.node()));
  if (request.timeout_ms() <= kDrainTimeoutMaxMs) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("timeout_ms: {} is more than a day ({})",
                                                request.timeout_ms(), kDrainTimeoutMaxMs));
}

/// Fills the response with the part of a page that fits.
auto PutPage(google::protobuf::MessageLite* response) {
  return [response](auto& page) {
    Trim(&page);
    ToProto(page, response);
  };
}

class AdminRpc final : public v1::AdminService::CallbackService {
 public:
  explicit AdminRpc(RpcContext context) : context_(std::move(context)) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* call,
                                      const v1::GetStatusRequest* request,
                                      v1::JobStatus* response) override {
    return RunFor(
        {.joiners = true}, call,
        [this, request](MasterCore& core, StepTime at) -> absl::StatusOr<StatusFacts> {
          StatusFacts facts = StatusFactsOf(core, context_.job->name, at);
          const bool over = IsTerminal(facts.status.state);
          joiners_.IsTold(request->joiner(), over, at.now);
          if (over) facts.status.end_unheard_by = joiners_.EndUnheardBy(core.nodes(), at.now);
          return facts;
        },
        [response](StatusFacts& facts) { ToProto(Complete(std::move(facts)), response); });
  }
  grpc::ServerUnaryReactor* ListShards(grpc::CallbackServerContext* call,
                                       const v1::ListShardsRequest* request,
                                       v1::ListShardsResponse* response) override {
    return Run(
        call,
        [this, request](MasterCore& core, StepTime at) {
          return ShardsOf(
              core, at.now,
              [this](const ShardId& shard) { return context_.sources->WorkOf(shard); }, *request);
        },
        PutPage(response));
  }
  grpc::ServerUnaryReactor* GetShardMap(grpc::CallbackServerContext* call,
                                        const v1::GetShardMapRequest* request,
                                        v1::GetShardMapResponse* response) override {
    return Run(
        call, [request](MasterCore& core, StepTime) { return ShardMapOf(core, *request); },
        [response](const ShardMap& map) { ToProto(map, response); });
  }
  grpc::ServerUnaryReactor* RetryShards(grpc::CallbackServerContext* call,
                                        const v1::RetryShardsRequest* request,
                                        v1::RetryShardsResponse* response) override {
    if (request->shards_size() > kRetryMax) {
      return Answer(call,
                    absl::InvalidArgumentError(fmt::format(
                        "shards: {} entries are more than the limit of {}; an empty list means all",
                        request->shards_size(), kRetryMax)));
    }
    return Run(call, [request, response](MasterCore& core, StepTime at) -> absl::Status {
      std::vector<ShardId> shards;
      for (const v1::ShardId& shard : request->shards()) {
        MUSTER_ASSIGN_OR_RETURN(shards.emplace_back(), FromProto<ShardId>(shard));
      }
      MUSTER_ASSIGN_OR_RETURN(const uint64_t retried, core.RetryShards(shards, at));
      response->set_retried(retried);
      return absl::OkStatus();
    });
  }
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext* call,
                                       const v1::ListEventsRequest* request,
                                       v1::ListEventsResponse* response) override {
    return RunFor(
        {.joiners = true}, call,
        [request](MasterCore& core, StepTime) { return EventsOf(core, *request); },
        PutPage(response));
  }
  grpc::ServerUnaryReactor* ReportNode(grpc::CallbackServerContext* call,
                                       const v1::ReportNodeRequest* request,
                                       v1::ReportNodeResponse*) override {
    absl::StatusOr<NodeReport> report = ParseReport(*request);
    if (!report.ok()) return Answer(call, report.status());
    const AdminCall may{.joiners = true, .role = report->role};
    return RunFor(may, call, [report = *std::move(report)](MasterCore& core, StepTime at) {
      core.ReportNode(report, at);
      return absl::OkStatus();
    });
  }
  grpc::ServerUnaryReactor* JoinNode(grpc::CallbackServerContext* call,
                                     const v1::JoinNodeRequest* request,
                                     v1::JoinNodeResponse* response) override {
    absl::StatusOr<JoinWish> wish = ParseJoin(*request);
    if (!wish.ok()) return Answer(call, wish.status());
    return RunFor(
        {.joiners = true, .role = wish->role}, call,
        [this, wish = *std::move(wish)](MasterCore& core,
                                        StepTime at) -> absl::StatusOr<JoinFacts> {
          MUSTER_ASSIGN_OR_RETURN(Joining joining,
                                  joiners_.Join(wish, core.nodes(), core.options(), at.now));
          return JoinFacts{std::move(joining), core.options().run_id};
        },
        [this, response](const JoinFacts& facts) { FillJoin(facts, context_, response); });
  }
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* call, const v1::DrainRequest*,
                                  v1::DrainResponse*) override {
    return Run(call, [](MasterCore& core, StepTime at) {
      core.Drain(at);
      return absl::OkStatus();
    });
  }
  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* call,
                                      const v1::DrainNodeRequest* request,
                                      v1::DrainNodeResponse* response) override {
    const absl::Status checked = CheckDrain(*request);
    if (!checked.ok()) return Answer(call, checked);
    const NodeRole role =
        NodeTable::ServerIdOf(request->node()) ? NodeRole::kServer : NodeRole::kWorker;
    return RunFor({.joiners = true, .role = role}, call,
                  [request, response](MasterCore& core, StepTime at) -> absl::Status {
                    MUSTER_ASSIGN_OR_RETURN(
                        const NodeDrain drain,
                        core.DrainNode(request->node(),
                                       std::chrono::milliseconds(request->timeout_ms()), at));
                    response->set_drain(std::string(ToString(drain.state)));
                    response->set_left(drain.left);
                    return absl::OkStatus();
                  });
  }
  grpc::ServerUnaryReactor* ResumeNode(grpc::CallbackServerContext* call,
                                       const v1::ResumeNodeRequest* request,
                                       v1::ResumeNodeResponse*) override {
    const absl::Status checked = CheckNodeName("node", request->node());
    if (!checked.ok()) return Answer(call, checked);
    return Run(call, [request](MasterCore& core, StepTime at) {
      return core.ResumeNode(request->node(), at);
    });
  }
  grpc::ServerUnaryReactor* ListPartitions(grpc::CallbackServerContext* call,
                                           const v1::ListPartitionsRequest* request,
                                           v1::ListPartitionsResponse* response) override {
    return Run(
        call,
        [request](MasterCore& core, StepTime at) { return PartitionsOf(core, at.now, *request); },
        PutPage(response));
  }
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* call,
                                   const v1::CancelRequest* request, v1::CancelResponse*) override {
    return Run(call, [request](MasterCore& core, StepTime at) {
      return core.Cancel({ValidUtf8(request->reason(), kReasonBytesMax), request->failed()}, at);
    });
  }
  grpc::ServerUnaryReactor* GetManifest(grpc::CallbackServerContext* call,
                                        const v1::GetManifestRequest* request,
                                        v1::GetManifestResponse* response) override {
    return Run(
        call,
        [this, request](MasterCore& core, StepTime) {
          absl::StatusOr<ManifestFacts> facts = KeptManifestOf(core, *request);
          // In the step, so that no newer snapshot comes in between.
          if (facts.ok()) context_.deletions->Hold(FilesOf(*facts), TimeToRead(*facts));
          return facts;
        },
        [this, response](const ManifestFacts& facts) {
          FillManifest(facts, context_.job->snapshot_directory, response);
        });
  }

 private:
  /// As RunOnOwner, for callers who may do everything.
  template <typename Step, typename... Fill>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* call, Step step, Fill... fill) {
    return RunFor({}, call, std::move(step), std::move(fill)...);
  }
  template <typename Step, typename... Fill>
  grpc::ServerUnaryReactor* RunFor(const AdminCall& may, grpc::CallbackServerContext* call,
                                   Step step, Fill... fill) {
    const absl::StatusOr<AdminPowers> powers = CheckAdmin(*call, context_);
    if (!powers.ok()) return Answer(call, powers.status());
    if (powers->joins) {
      const absl::Status joiner = CheckJoiner(*powers->joins, may);
      if (!joiner.ok()) return Answer(call, joiner);
    }
    return RunOnOwner(call, context_, std::move(step), std::move(fill)...);
  }
  const RpcContext context_;
  Joiners joiners_;  // of the thread that owns the core
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminRpc(const RpcContext& context) {
  return std::make_unique<AdminRpc>(context);
}

}  // namespace muster
