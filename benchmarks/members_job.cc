#include "benchmarks/members_job.h"

#include <algorithm>

#include "base/check.h"
#include "benchmarks/master_job.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTurn{1};  // calls within this time share a sync
/// As the workers' and servers' (worker_sdk/core/worker_core.cc, ps/service/lane_server.cc).
constexpr milliseconds kMapSpacing{20};
constexpr milliseconds kFiguresSpacing{500};
/// Leases that a worker holds.
constexpr uint32_t kLeases = 2;
/// Until a server that died has been started again.
constexpr milliseconds kAway{200};
/// The last of many servers comes back so much later than the first.
constexpr milliseconds kSpread{1'000};
/// By the clock of the job; nothing here takes a tenth of it.
constexpr std::chrono::minutes kPhaseMax{30};

/// When in `interval` it is the turn of `number`, one of `count`.
std::chrono::nanoseconds Share(milliseconds interval, uint64_t number, uint64_t count) {
  return std::chrono::nanoseconds(interval) * static_cast<int64_t>(number) /
         static_cast<int64_t>(count);
}

}  // namespace

MembersJob::MembersJob(const MembersSizes& sizes, const std::string& folder)
    : sizes_(sizes),
      folder_(folder),
      sources_(MasterJobSources(sizes.shards)),
      options_(MasterJobOptions(sizes.shards)) {
  options_.partitions = sizes.partitions;
  options_.servers = sizes.servers;
  options_.snapshot_interval = std::chrono::seconds(10);  // the default of a job
  OpenMaster();
  for (uint32_t i = 0; i < sizes.servers; ++i) {
    const TimePoint due = now_ + Share(options_.server_times.heartbeat_interval, i, sizes.servers);
    servers_.push_back({SimulatedServer(i), due, due});
  }
  for (uint32_t i = 0; i < sizes.workers; ++i) {
    const TimePoint due = now_ + Share(options_.leases.heartbeat_interval, i, sizes.workers);
    workers_.push_back({SimulatedWorker(i), due, due});
  }
  for (Server& server : servers_) StartServer(&server);
  for (Worker& worker : workers_) AskFor(&worker, {.want = kLeases});
  restarting_ = true;
  Until([this] { return EverybodyKnows(); });
  restarting_ = false;
}

void MembersJob::OpenMaster() {
  owner_.reset();  // the journal is opened once at a time
  owner_ = std::make_unique<MeasuredOwner>(options_, folder_, &sources_, now_);
}

void MembersJob::AskFor(Worker* worker, SimulatedWorker::Wish wish) {
  worker->due = now_ + (WantsMap(*worker) ? kMapSpacing : options_.leases.heartbeat_interval);
  if (now_ >= worker->peers_due) {
    wish.peers = true;
    worker->peers_due = now_ + kFiguresSpacing;
  }
  owner_->AskWorker(worker->it.Request(wish), [worker](const WorkerAnswer& answer) {
    worker->it.Take(answer.reply, answer.map.get());
    worker->heard = true;
  });
}

void MembersJob::AskFor(Server* server) {
  server->due = now_ + options_.server_times.heartbeat_interval;
  if (!server->it.registered()) {
    owner_->Register(server->it.Registration(), [server, this](const RegisterServerReply& reply) {
      server->it.Take(reply);
      server->due = now_;
    });
    return;
  }
  const bool traffic = now_ >= server->traffic_due;
  if (traffic) server->traffic_due = now_ + kFiguresSpacing;
  owner_->AskServer(server->it.Request(traffic), [server, this](const ServerExchangeReply& reply) {
    server->it.Take(reply);
    server->heard = true;
    if (!server->it.settled()) server->due = now_;  // it says at once what it has restored
  });
}

void MembersJob::Turn() {
  for (Server& server : servers_) {
    if (server.alive && now_ >= server.due) AskFor(&server);
  }
  for (Worker& worker : workers_) {
    if (now_ >= worker.due) AskFor(&worker, {});
  }
  owner_->Turn(kTurn);
  now_ = owner_->now();
  const bool all = std::ranges::all_of(
      servers_, [](const Server& server) { return server.alive && server.it.registered(); });
  if (!all) {
    awaited_ = MapVersion();
  } else if (awaited_ == MapVersion()) {
    awaited_ = owner_->core().partitions().version();
  }
}

bool MembersJob::WantsMap(const Worker& worker) const {
  return restarting_ && (awaited_ == MapVersion() || worker.it.map_version() < awaited_);
}

bool MembersJob::EverybodyKnows() const {
  return std::ranges::all_of(
             servers_, [](const Server& server) { return server.alive && server.it.settled(); }) &&
         std::ranges::none_of(workers_, [this](const Worker& worker) { return WantsMap(worker); });
}

bool MembersJob::EveryWorkerHasTheMap() const {
  const MapVersion newest = owner_->core().partitions().version();
  return std::ranges::all_of(
      workers_, [&](const Worker& worker) { return worker.it.map_version() == newest; });
}

uint32_t MembersJob::served() const {
  uint32_t served = 0;
  for (const Server& server : servers_) {
    served += owner_->core().partitions().LoadOf(server.it.id()).serving;
  }
  return served;
}

template <typename Condition>
MembersPhase MembersJob::Until(Condition&& condition) {
  owner_->ForgetLargest();
  const OwnerCosts before = owner_->costs();
  const TimePoint began = now_;
  do {
    Turn();
    MUSTER_CHECK_MSG(now_ - began < kPhaseMax, "the members do not get where they are to get");
  } while (!condition());
  return {owner_->costs() - before, now_ - began};
}

MembersPhase MembersJob::Steady(std::chrono::nanoseconds time) {
  return Until([end = now_ + time, this] { return now_ >= end; });
}

MembersPhase MembersJob::Finish(uint64_t done) {
  return Until([&] {
    if (this->done() >= done) return true;
    for (Worker& worker : workers_) AskFor(&worker, {.finish = true, .want = kLeases});
    return false;
  });
}

void MembersJob::StartServer(Server* server) {
  server->alive = true;
  server->it.StartAgain();
  server->due = now_;
  owner_->Report({.node = server->it.name(),
                  .role = NodeRole::kServer,
                  .start = server->it.start(),
                  .pid = 1'000 + server->it.start().value()});
}

void MembersJob::ReportExit(const Server& server) {
  owner_->Report({.node = server.it.name(),
                  .role = NodeRole::kServer,
                  .start = server.it.start(),
                  .what = NodeReport::What::kExited,
                  .signal = 9});
}

MembersJob::Restart MembersJob::RestartServers(uint32_t first, uint32_t count) {
  restarting_ = true;
  awaited_ = MapVersion();
  for (uint32_t i = 0; i < count; ++i) {
    Server& server = servers_[(first + i) % servers_.size()];
    server.alive = false;
    ReportExit(server);
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].due = std::min(workers_[i].due, now_ + Share(kMapSpacing, i, workers_.size()));
  }
  Restart restart;
  restart.away = Until([end = now_ + kAway, this] { return now_ >= end; });
  uint32_t started = 0;
  const auto start_due = [&, began = now_] {
    while (started < count && now_ >= began + Share(kSpread, started, count)) {
      StartServer(&servers_[(first + started++) % servers_.size()]);
    }
  };
  start_due();
  restart.back = Until([&] {
    start_due();
    return started == count && EverybodyKnows();
  });
  restarting_ = false;
  return restart;
}

MembersJob::MasterRestart MembersJob::RestartMaster() {
  MasterRestart restart;
  owner_.reset();
  const auto cpu = ThreadCpu();
  const auto wall = std::chrono::steady_clock::now();
  OpenMaster();
  restart.open_cpu = ThreadCpu() - cpu;
  restart.open_wall = std::chrono::steady_clock::now() - wall;
  for (Worker& worker : workers_) worker.heard = false;
  for (Server& server : servers_) server.heard = false;
  restart.heard = Until([this] {
    return std::ranges::all_of(workers_, [](const Worker& worker) { return worker.heard; }) &&
           std::ranges::all_of(
               servers_, [](const Server& server) { return server.heard && server.it.settled(); });
  });
  return restart;
}

}  // namespace muster
