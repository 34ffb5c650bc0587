#include "tests/sim/worker_link.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "tests/sim/sim_master.h"
#include "tests/sim/sim_server.h"
#include "tests/sim/through_wire.h"
#include "worker_sdk/core/row_plan.h"

namespace muster::sim {
namespace {

constexpr milliseconds kExchangeTimeout{500};
constexpr milliseconds kRegisterAgain{100};
/// How long a connection may be silent with requests outstanding.
constexpr milliseconds kSilenceMax{2'000};

bool RefusedForGood(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

WorkerLink::WorkerLink(Env* env, Rng* rng, Owner owner)
    : env_(env),
      rng_(rng),
      owner_(std::move(owner)),
      late_news_(env->Stream(7, owner_.process->id).Next(), env->knobs.late_news) {
  for (uint32_t p = 0; p < env->knobs.partitions; ++p) order_.push_back(PartitionId(p));
}

void WorkerLink::Carry() {
  Flush();
  WakeControl();
}

void WorkerLink::RegisterTables(size_t first, size_t end, std::function<void()> then) {
  if (first == end) return then();
  const TableSpec spec = env_->workload.tables()[first];
  Call<TableId>(env_,
                {owner_.process, here(), kExchangeTimeout,
                 [spec](MasterCore& core, StepTime at) { return core.RegisterTable(spec, at); },
                 [this, first, end, then](const absl::StatusOr<TableId>& id) {
                   if (!id.ok() && RefusedForGood(id.status())) return owner_.refused();
                   if (!id.ok()) {
                     return After(kRegisterAgain,
                                  [this, first, end, then] { RegisterTables(first, end, then); });
                   }
                   if (id->value() != first + 1) env_->oracle.Fail("table-id", "another table id");
                   RegisterTables(first + 1, end, then);
                 }});
}

void WorkerLink::WakeControl() {
  const TimePoint next = core_->NextExchange(Now());
  if (next >= control_at_) return;
  control_at_ = next;
  env_->scheduler.At(owner_.process->True(next) + nanoseconds(2'000), owner_.process, [this, next] {
    if (control_at_ == next) control_at_ = TimePoint::max();
    Exchange();
  });
}

void WorkerLink::Exchange() {
  if (core_->NextExchange(Now()) > Now()) return WakeControl();
  WorkerExchangeRequest request = core_->BeginExchange({}, Now());
  if (request.map_base < request.map_version) env_->probes.Hit(Probe::kWholeMapWanted);
  late_news_.CountWithheld(&request);
  if (env_->knobs.wire) request = ThroughWire(request);
  env_->Say(*owner_.process, "exchange {}: {} held, {} done, {} returned, wants {}",
            request.sequence, request.held.size(), request.done.size(), request.returned.size(),
            request.want);
  auto shared = std::make_shared<const WorkerExchangeRequest>(std::move(request));
  Call<WorkerExchangeReply>(
      env_, {owner_.process, here(), kExchangeTimeout,
             [env = env_, shared](MasterCore& core, StepTime at) {
               return Serve(env, *shared, core, at);
             },
             [this](absl::StatusOr<WorkerExchangeReply> reply) { OnExchanged(std::move(reply)); }});
  owner_.changed();
}

absl::StatusOr<WorkerExchangeReply> WorkerLink::Serve(Env* env,
                                                      const WorkerExchangeRequest& request,
                                                      MasterCore& core, StepTime at) {
  Probes& probes = env->probes;
  uint64_t& newest = env->heard[request.incarnation];
  if (request.sequence <= newest) probes.Hit(Probe::kOvertakenWorker);
  newest = std::max(newest, request.sequence);
  const std::map<LeaseToken, Lease> before = core.leases().leases();
  absl::StatusOr<WorkerExchangeReply> reply = core.ExchangeWorker(request, at);
  if (!reply.ok()) {
    probes.Hit(Probe::kSupersededWorker);
    return reply;
  }
  if (const std::shared_ptr<const MapNews> news = core.TellMap(request)) {
    reply->map = news->as_reply().map;
    reply->map_changes = news->as_reply().map_changes;
    probes.Hit(Probe::kMapChanges, reply->map_changes.has_value());
  }
  for (ShardGrant& grant : reply->grants) {
    // The master's shell fills in what is to be read.
    if (Workload::IsEvaluate(grant.shard)) grant.work.mode = DatasetMode::kEvaluate;
    if (Workload::IsPredict(grant.shard)) grant.work.mode = DatasetMode::kPredict;
    FillWork(&grant.work);
    if (before.contains(grant.token)) probes.Hit(Probe::kRegranted);
    env->oracle.OnGrant(request.worker, request.incarnation, grant, core);
  }
  for (const DoneVerdict& verdict : reply->verdicts) {
    if (verdict.code == DoneCode::kReverify && !Workload::Trains(verdict.shard)) {
      env->oracle.Fail("evaluate", "a shard that trains nothing is to be verified again");
    }
    if (verdict.code != DoneCode::kAccepted) continue;
    if (!before.contains(verdict.token)) probes.Hit(Probe::kRepeatedVerdict);
    if (verdict.token.incarnation() < core.incarnation()) probes.Hit(Probe::kReasserted2);
  }
  return env->knobs.wire ? ThroughWire(*reply) : reply;
}

void WorkerLink::OnExchanged(absl::StatusOr<WorkerExchangeReply> reply) {
  if (reply.ok()) {
    env_->probes.Hit(Probe::kLateNews, late_news_.Withhold(&*reply, env_->scheduler.now()));
    for (const ShardGrant& grant : reply->grants) {
      env_->Say(*owner_.process, "is granted shard {}, token {}", ToString(grant.shard),
                ToString(grant.token));
      if (grant.work.stream.has_value())
        env_->oracle.OnStreamShard(grant.shard, *grant.work.stream);
    }
    for (const DoneVerdict& verdict : reply->verdicts) {
      env_->Say(*owner_.process, "hears of shard {}: {}", ToString(verdict.shard),
                static_cast<int>(verdict.code));
    }
    core_->OnExchangeReply(*reply, Now());
    owner_.told(*reply);
  } else {
    core_->OnExchangeFailed(Now());
    if (RefusedForGood(reply.status())) owner_.refused();
  }
  if (core_->map() && core_->map()->version > order_version_) {
    order_ = sdk::SendingOrder(*core_->map());
    order_version_ = core_->map()->version;
  }
  owner_.changed();
}

void WorkerLink::Flush() {
  for (const sdk::SendRequest& request : core_->Flush(Now())) Send(request);
  const std::optional<TimePoint> next = core_->NextFlush();
  if (!next.has_value() || *next >= flush_at_) return;
  flush_at_ = *next;
  env_->scheduler.At(owner_.process->True(*next) + nanoseconds(2'000), owner_.process,
                     [this, at = *next] {
                       if (flush_at_ == at) flush_at_ = TimePoint::max();
                       owner_.changed();
                     });
}

void WorkerLink::Send(const sdk::SendRequest& request) {
  auto shared = std::make_shared<const sdk::SendRequest>(request);
  auto message = std::make_shared<const DataMessage>(
      env_->knobs.wire ? ThroughWire(MessageOf(request)) : MessageOf(request));
  const Endpoint here = this->here(), there = ServerEnd(request.lane.server.value());
  env_->network.Send(here, there, [this, shared, message, here, there] {
    const sdk::LaneAddress& lane = shared->lane;
    SimServer* const server = env_->Listener(lane.server, lane.incarnation);
    if (server == nullptr) {  // no process listens, or another one, as its greeting says
      env_->network.Send(there, here, [this, shared] {
        env_->scheduler.After({}, owner_.process, [this, shared] {
          core_->OnUnanswered(shared->id, Now());
          owner_.changed();
        });
      });
      return;
    }
    const auto& nodes = env_->journal.state().nodes;
    const auto node = nodes.find(NodeTable::ServerName(lane.server));
    if (shared->push && node != nodes.end() &&
        node->second.incarnation != lane.incarnation.value()) {
      env_->probes.Hit(Probe::kZombiePush);
    }
    env_->scheduler.After({}, server->process(), [this, server, shared, message, here, there] {
      server->OnData(shared->lane.lane, message, [this, shared, here, there](DataReply reply) {
        env_->network.Send(there, here, [this, shared, reply] {
          env_->scheduler.After({}, owner_.process,
                                [this, shared, reply] { Answer(shared, reply); });
        });
      });
    });
  });
  // A broken connection is noticed sooner or later. An answer that still arrives is outdated.
  After(milliseconds(100) + Some(kSilenceMax), [this, id = request.id] {
    core_->OnUnanswered(id, Now());
    owner_.changed();
  });
}

void WorkerLink::Answer(const std::shared_ptr<const sdk::SendRequest>& request,
                        const DataReply& reply) {
  if (env_->knobs.wire && request->push) env_->probes.Hit(Probe::kWire);
  sdk::ReceivedRows rows(reply.rows);
  rows.versions = reply.versions;
  core_->OnReply(*request, reply.parts, rows, reply.text, Now());
  if (!core_->failure().empty()) env_->oracle.Fail("bad-request", core_->failure());
  owner_.changed();
}

std::shared_ptr<const sdk::RowBatch> WorkerLink::PushOf(const TrainBatch& batch) const {
  std::vector<sdk::TableKeys> tables;
  for (const BatchRows& rows : batch.rows) tables.push_back({rows.table, rows.dim, rows.keys});
  auto push = std::make_shared<sdk::RowBatch>();
  push->plan = sdk::PlanRows(tables, order_);
  push->values.resize(push->plan.value_count);
  for (size_t t = 0; t < batch.rows.size(); ++t) {
    sdk::ScatterRows(push->plan, t, batch.rows[t].gradients, push->values);
  }
  return push;
}

}  // namespace muster::sim
