#include "tests/sim/sim_worker.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "tests/sim/sim_master.h"
#include "tests/sim/sim_server.h"
#include "worker_sdk/core/row_plan.h"

namespace muster::sim {
namespace {

constexpr milliseconds kCallTimeout{500};
constexpr milliseconds kRetryEvery{100};
/// How long a connection may be silent with requests outstanding.
constexpr milliseconds kSilenceMax{2'000};

bool Permanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

SimWorker::SimWorker(Env* env, ProcessRef process, uint32_t slot, uint64_t start,
                     const TrainerFaults& faults)
    : env_(env),
      process_(std::move(process)),
      slot_(slot),
      start_(start),
      faults_(faults),
      rng_(env->Stream(3, process_->id)),
      late_news_(env->Stream(7, process_->id).Next(), env->knobs.late_news),
      name_("worker-" + std::to_string(slot)) {
  slot_file_.incarnation = HashWords(env->seed, process_->id) | 1;
  for (uint32_t p = 0; p < env->knobs.partitions; ++p) order_.push_back(PartitionId(p));
}

void SimWorker::Start() {
  Hello();
}

void SimWorker::Hello() {
  const WorkerKey key{name_, slot_file_.incarnation};
  Call<bool>(env_, {process_, WorkerEnd(slot_), kCallTimeout,
                    [key, start = start_](MasterCore& core, StepTime at) -> absl::StatusOr<bool> {
                      MUSTER_RETURN_IF_ERROR(core.HelloWorker(key, StartNumber(start), at));
                      return true;
                    },
                    [this](const absl::StatusOr<bool>& reply) {
                      if (Permanent(reply.status())) return env_->Exit(process_, {.exit_code = 1});
                      if (!reply.ok()) return After(kRetryEvery, [this] { Hello(); });
                      Greeted();
                      core_.emplace(sdk::WorkerCore::Options{
                          name_, slot_file_.incarnation, env_->knobs.shards_ahead,
                          env_->knobs.leases.heartbeat_interval});
                      RegisterTable(0, [this] { BeginLoops(); });
                      Pump();
                    }});
}

void SimWorker::Greeted() {
  std::vector<ProcessRef>& others = env_->greeted[slot_];
  for (const ProcessRef& other : others) {
    if (other->alive) env_->probes.Hit(Probe::kWorkerZombie);
  }
  others.push_back(process_);
}

void SimWorker::RegisterTable(size_t table, std::function<void()> then) {
  const TableSpec spec = env_->workload.tables()[table];
  const size_t early = env_->workload.tables().size() - 1;
  Call<TableId>(env_,
                {process_, WorkerEnd(slot_), kCallTimeout,
                 [spec](MasterCore& core, StepTime at) { return core.RegisterTable(spec, at); },
                 [this, table, early, then](const absl::StatusOr<TableId>& id) {
                   if (!id.ok() && Permanent(id.status())) return Fail();
                   if (!id.ok()) {
                     return After(kRetryEvery, [this, table, then] { RegisterTable(table, then); });
                   }
                   if (id->value() != table + 1) env_->oracle.Fail("table-id", "another table id");
                   if (table + 1 < early) return RegisterTable(table + 1, then);
                   then();
                 }});
}

void SimWorker::BeginLoops() {
  loops_.resize(env_->knobs.loops);
  Pump();
}

void SimWorker::WakeControl() {
  const TimePoint next = core_->NextExchange(Now());
  if (next >= control_at_) return;
  control_at_ = next;
  env_->scheduler.At(process_->True(next) + nanoseconds(2'000), process_, [this, next] {
    if (control_at_ == next) control_at_ = TimePoint::max();
    Exchange();
  });
}

void SimWorker::Exchange() {
  if (core_->NextExchange(Now()) > Now()) return WakeControl();
  WorkerExchangeRequest request = core_->BeginExchange({}, Now());
  if (request.map_base < request.map_version) env_->probes.Hit(Probe::kWholeMapWanted);
  late_news_.CountWithheld(&request);
  if (env_->knobs.wire) request = ThroughWire(request);
  env_->Say(*process_, "exchange {}: {} held, {} done, {} returned, wants {}", request.sequence,
            request.held.size(), request.done.size(), request.returned.size(), request.want);
  auto shared = std::make_shared<const WorkerExchangeRequest>(std::move(request));
  Call<WorkerExchangeReply>(
      env_, {process_, WorkerEnd(slot_), kCallTimeout,
             [env = env_, shared](MasterCore& core, StepTime at) {
               return Serve(env, *shared, core, at);
             },
             [this](absl::StatusOr<WorkerExchangeReply> reply) { OnExchanged(std::move(reply)); }});
  Pump();
}

absl::StatusOr<WorkerExchangeReply> SimWorker::Serve(Env* env, const WorkerExchangeRequest& request,
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
    if (!grant.work.stream.has_value()) grant.work.record_count = grant.work.minibatch_size = 1;
    if (before.contains(grant.token)) probes.Hit(Probe::kRegranted);
    env->oracle.OnGrant(request.worker, request.incarnation, grant, core);
  }
  for (const DoneVerdict& verdict : reply->verdicts) {
    if (verdict.code == DoneCode::kReverify && Workload::IsEvaluate(verdict.shard)) {
      env->oracle.Fail("evaluate", "an evaluate shard is to be verified again");
    }
    if (verdict.code != DoneCode::kAccepted) continue;
    if (!before.contains(verdict.token)) probes.Hit(Probe::kRepeatedVerdict);
    if (verdict.token.incarnation() < core.incarnation()) probes.Hit(Probe::kReasserted2);
  }
  return env->knobs.wire ? ThroughWire(*reply) : reply;
}

void SimWorker::OnExchanged(absl::StatusOr<WorkerExchangeReply> reply) {
  if (reply.ok()) {
    env_->probes.Hit(Probe::kLateNews, late_news_.Withhold(&*reply, env_->scheduler.now()));
    for (const ShardGrant& grant : reply->grants) {
      env_->Say(*process_, "is granted shard {}, token {}", ToString(grant.shard),
                ToString(grant.token));
      if (grant.work.stream.has_value()) env_->oracle.OnRange(grant.shard, *grant.work.stream);
    }
    for (const DoneVerdict& verdict : reply->verdicts) {
      env_->Say(*process_, "hears of shard {}: {}", ToString(verdict.shard),
                static_cast<int>(verdict.code));
    }
    core_->OnExchangeReply(*reply, Now());
    told_to_stop_ |= reply->directive != JobDirective::kWork && core_->draining();
  } else {
    core_->OnExchangeFailed(Now());
    if (Permanent(reply.status())) Fail();
  }
  if (core_->map() && core_->map()->version > order_version_) {
    order_ = sdk::SendingOrder(*core_->map());
    order_version_ = core_->map()->version;
  }
  Pump();
}

void SimWorker::Fail() {
  if (failed_) return;
  failed_ = true;
  core_->Abandon();
  After(milliseconds(500), [this] { env_->Exit(process_, {.exit_code = 1}); });
}

void SimWorker::Flush() {
  for (const sdk::SendRequest& request : core_->Flush(Now())) Send(request);
  const std::optional<TimePoint> next = core_->NextFlush();
  if (!next.has_value() || *next >= flush_at_) return;
  flush_at_ = *next;
  env_->scheduler.At(process_->True(*next) + nanoseconds(2'000), process_, [this, at = *next] {
    if (flush_at_ == at) flush_at_ = TimePoint::max();
    Pump();
  });
}

void SimWorker::Send(const sdk::SendRequest& request) {
  auto shared = std::make_shared<const sdk::SendRequest>(request);
  auto message = std::make_shared<const DataMessage>(
      env_->knobs.wire ? ThroughWire(MessageOf(request)) : MessageOf(request));
  const Endpoint here = WorkerEnd(slot_), there = ServerEnd(request.lane.server.value());
  env_->network.Send(here, there, [this, shared, message, here, there] {
    const sdk::LaneAddress& lane = shared->lane;
    SimServer* const server = env_->Listener(lane.server, lane.incarnation);
    if (server == nullptr) {  // no process listens, or another one, as its greeting says
      env_->network.Send(there, here, [this, shared] {
        env_->scheduler.After({}, process_, [this, shared] {
          core_->OnUnanswered(shared->id, Now());
          Pump();
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
          env_->scheduler.After({}, process_, [this, shared, reply] { Answer(shared, reply); });
        });
      });
    });
  });
  // A broken connection is noticed sooner or later. An answer that still arrives is outdated.
  After(milliseconds(100) + Some(kSilenceMax), [this, id = request.id] {
    core_->OnUnanswered(id, Now());
    Pump();
  });
}

void SimWorker::Answer(const std::shared_ptr<const sdk::SendRequest>& request,
                       const DataReply& reply) {
  if (env_->knobs.wire && request->push) env_->probes.Hit(Probe::kWire);
  sdk::ReceivedRows rows(reply.rows);
  rows.versions = reply.versions;
  core_->OnReply(*request, reply.parts, rows, reply.text, Now());
  if (!core_->failure().empty()) env_->oracle.Fail("bad-request", core_->failure());
  Pump();
}

void SimWorker::Pump() {
  if (pumping_ || !process_->alive || !core_.has_value()) return;
  pumping_ = true;
  bool again = true;
  while (again && process_->alive) {
    again = false;
    for (Loop& loop : loops_) again |= Advance(&loop);
  }
  pumping_ = false;
  if (!process_->alive) return;
  const auto idle = std::ranges::count(loops_, State::kIdle, &Loop::state);
  core_->SetWaiting(static_cast<uint32_t>(idle));
  Finish();
  Flush();
  WakeControl();
}

void SimWorker::Finish() {
  const bool over = !loops_.empty() && std::ranges::all_of(loops_, [](const Loop& loop) {
    return loop.state == State::kEnded;
  });
  if (!over || failed_) return;
  if (!std::exchange(finishing_, true)) core_->Leave();
  if (core_->ended() || core_->idle()) {
    env_->Exit(process_, {.exit_code = told_to_stop_ ? 0u : 1u});
  }
}

}  // namespace muster::sim
