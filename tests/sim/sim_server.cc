#include "tests/sim/sim_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "ps/snapshot/chain.h"
#include "tests/ps/core/whole_requests.h"
#include "tests/sim/sim_master.h"

namespace muster::sim {
namespace {

constexpr milliseconds kServerCallTimeout{600};
// As a real server's, and how long a lane is busy at most.
constexpr milliseconds kLanePatience{100}, kLaneBusyMax{600};
constexpr uint64_t kBusyEvery = 60;
constexpr nanoseconds kSliceDelayMax{3'000'000};

const Node* FindNode(const MasterCore& core, ServerId id) {
  const auto node = core.nodes().nodes().find(NodeTable::ServerName(id));
  return node == core.nodes().nodes().end() ? nullptr : &node->second;
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

SimServer::SimServer(Env* env, ProcessRef process, uint32_t slot, uint64_t start)
    : env_(env),
      process_(std::move(process)),
      slot_(slot),
      start_(start),
      rng_(env->Stream(2, process_->id)),
      torn_(env->Stream(9, process_->id)),
      busy_(env->Stream(12, process_->id)),
      slices_(env->Stream(14, process_->id)),
      lanes_(env->knobs.lanes),
      late_news_(env->Stream(6, process_->id).Next(), env->knobs.late_news) {}

const ps::Partition* SimServer::Find(PartitionId id, OwnerEpoch epoch) const {
  const Lane& lane = lanes_[id.value() % lanes_.size()];
  if (lane.owned == nullptr || lane.owned->Look(id)->epoch != epoch) return nullptr;
  return ps::Served(*lane.owned, id);
}

nanoseconds SimServer::Backoff() {
  const nanoseconds base = backoff_;
  backoff_ = std::min<nanoseconds>(backoff_ * 2, milliseconds(500));
  return base / 2 + Some(base);
}

void SimServer::Start() {
  Register();
}

void SimServer::Register() {
  RegisterServerRequest request{
      NodeTable::ServerName(ServerId(slot_)), process_->id,
      std::vector<std::vector<std::string>>(lanes_.size(), {"unix:/" + process_->name}),
      StartNumber(start_)};
  Call<RegisterServerReply>(env_, {process_, ServerEnd(slot_), kServerCallTimeout,
                                   [env = env_, request](MasterCore& core, StepTime at) {
                                     auto reply = core.RegisterServer(request, at);
                                     if (absl::IsFailedPrecondition(reply.status())) {
                                       env->probes.Hit(Probe::kSupersededServer);
                                     }
                                     return reply;
                                   },
                                   [this](const absl::StatusOr<RegisterServerReply>& reply) {
                                     if (reply.ok()) return Begin(*reply);
                                     if (!MayPass(reply.status()))
                                       return env_->Exit(process_, {.exit_code = 1});
                                     After(Backoff(), [this] { Register(); });
                                   }});
}

void SimServer::Begin(const RegisterServerReply& registered) {
  incarnation_ = registered.incarnation;
  env_->Say(*process_, "registered, incarnation {}", incarnation_.value());
  for (const auto& other : env_->servers) {
    const bool zombie = other.get() != this && other->slot_ == slot_ && other->process_->alive &&
                        other->incarnation_ != ServerIncarnation();
    if (zombie) env_->probes.Hit(Probe::kServerZombie);
  }
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].owned = std::make_unique<ps::OwnedPartitions>(
        ps::OwnedPartitions::Options{.job_seed = kJobSeed,
                                     .partition_count = env_->knobs.partitions,
                                     .lane = i,
                                     .lane_count = static_cast<uint32_t>(lanes_.size()),
                                     .retry_pause = milliseconds(200)});
  }
  control_.emplace(registered, static_cast<uint32_t>(lanes_.size()));
  collector_.emplace(ps::LaneReports::Options{kLanePatience, std::chrono::seconds(30)},
                     lanes_.size());
  backoff_ = milliseconds(50);
  Report();
}

void SimServer::Report() {
  sequence_ = control_->NextSequence();
  KeepALaneBusy();
  for (const size_t i : collector_->Begin(Now())) {
    Post(&lanes_[i], [this, i, sequence = sequence_] {
      ps::LaneReport report = lanes_[i].owned->Report(sequence);
      report.traffic = lanes_[i].owned->ReportTraffic(sequence, 2);
      for (const OwnedPartition& one : report.owned) env_->oracle.OnOwned(process_->id, one);
      const bool late = collector_->Answered(i, std::move(report));
      if (collecting_) return Collect();
      if (late) Wake();
    });
  }
  collecting_ = true;
  Collect();
}

void SimServer::Collect() {
  const nanoseconds wait = collector_->Wait(Now(), ps::LaneReports::Hanging::kAreAwaited);
  if (wait.count() > 0) {
    return After(wait + nanoseconds(2'000), [this, sequence = sequence_] {
      if (collecting_ && sequence == sequence_) Collect();
    });
  }
  collecting_ = false;
  reports_ = collector_->Take();
  for (const ps::LaneReport& report : reports_) {
    if (report.sequence != sequence_) env_->probes.Hit(Probe::kRepeatedReport);
  }
  Exchange();
}

void SimServer::KeepALaneBusy() {
  if (busy_.Below(kBusyEvery) != 0) return;
  Lane& lane = lanes_[busy_.Below(lanes_.size())];
  const nanoseconds busy(busy_.Below(static_cast<uint64_t>(nanoseconds(kLaneBusyMax).count())));
  lane.free_at = std::max(lane.free_at, env_->scheduler.now()) + busy;
}

void SimServer::Exchange() {
  ServerExchangeRequest request = control_->MakeRequest(reports_, {});
  AddMissing(&request);
  CountRequest(request);
  if (env_->knobs.wire) request = ThroughWire(request);
  auto shared = std::make_shared<const ServerExchangeRequest>(std::move(request));
  Call<ServerExchangeReply>(
      env_,
      {process_, ServerEnd(slot_), kServerCallTimeout,
       [env = env_, shared](MasterCore& core, StepTime at) -> absl::StatusOr<ServerExchangeReply> {
         const Node* node = FindNode(core, shared->id);
         const bool overtaken = node != nullptr && shared->sequence <= node->sequence;
         CountRefused(env, *shared, core, overtaken);
         ServerExchangeReply reply = core.ExchangeServer(*shared, at);
         if (reply.unknown_incarnation) {
           env->probes.Hit(Probe::kUnknownServer);
         } else if (overtaken) {
           env->probes.Hit(Probe::kOvertakenServer);
         }
         return env->knobs.wire ? ThroughWire(reply) : reply;
       },
       [this](const absl::StatusOr<ServerExchangeReply>& reply) { OnExchanged(reply); }});
}

void SimServer::CountRefused(Env* env, const ServerExchangeRequest& request, const MasterCore& core,
                             bool overtaken) {
  const Node* node = FindNode(core, request.id);
  const bool former = node == nullptr || node->record.incarnation != request.incarnation.value();
  for (const SnapshotReport& report : request.snapshots) {
    const SnapshotNumber counts = core.partitions().manifest(report.partition).number;
    const SnapshotNumber number = report.manifest.number;
    const bool over = core.partitions().entry(report.partition).epoch != report.epoch ||
                      number.incarnation() != core.incarnation();
    if (former) {
      env->probes.Hit(Probe::kFormerSnapshot);
    } else if (overtaken) {
      env->probes.Hit(Probe::kOvertakenSnapshot);
    } else if (number == counts) {
      env->probes.Hit(Probe::kRepeatedSnapshot);
    } else if (over) {
      env->probes.Hit(Probe::kRefusedSnapshot);
    }
  }
}

bool SimServer::KnowsAccepted(PartitionId partition, SnapshotNumber number) const {
  for (const ps::LaneReport& report : reports_) {
    for (const OwnedPartition& one : report.owned) {
      if (one.partition == partition && one.accepted == number) return true;
    }
  }
  return false;
}

void SimServer::AddMissing(ServerExchangeRequest* request) {
  if (!loses_partition_ || request->owned.empty()) return;
  loses_partition_ = false;
  const OwnedPartition& lost = request->owned[rng_.Below(request->owned.size())];
  env_->probes.Hit(Probe::kLostPartition);
  env_->Say(*process_, "says that it has lost partition {}", lost.partition.value());
  request->missing.push_back({lost.partition, lost.epoch});
}

void SimServer::CountRequest(const ServerExchangeRequest& request) {
  for (const SnapshotReport& report : request.snapshots) {
    const std::pair name(report.partition, report.manifest.number);
    if (!images_.contains(name) && unchanged_.insert(name).second) {
      env_->probes.Hit(Probe::kUnchanged);
    }
  }
}

void SimServer::OnExchanged(const absl::StatusOr<ServerExchangeReply>& answer) {
  if (!answer.ok()) return After(Backoff(), [this] { Report(); });
  backoff_ = milliseconds(50);
  ServerExchangeReply reply = *answer;
  env_->probes.Hit(Probe::kLateNews, late_news_.Withhold(&reply, env_->scheduler.now()));
  auto orders = control_->OnReply(reply);
  if (!orders.ok() && !absl::IsAborted(orders.status())) {
    env_->Say(*process_, "{}", Message(orders.status()));
    return env_->Exit(process_, {.exit_code = 1});
  }
  if (orders.ok()) {
    for (const TableSpec& table : orders->tables) {
      for (Lane& lane : lanes_) {
        Post(&lane, [this, &lane, table] {
          lane.owned->AddTable(table);
          WakeIfNews(lane);
        });
      }
      control_->TableAdded(table.id);
    }
    for (size_t i = 0; i < lanes_.size(); ++i) {
      Post(&lanes_[i], [this, lane = &lanes_[i], commands = orders->lanes[i]] {
        for (const OwnCommand& own : commands.owns) {
          env_->Say(*process_, "is told to own partition {} at epoch {} from snapshot {}",
                    own.partition.value(), own.epoch.value(), ToString(own.manifest.number));
        }
        lane->owned->Apply(commands);
        Pump(lane);
      });
    }
  }
  if (reply.heartbeat_interval.count() > 0) heartbeat_ = reply.heartbeat_interval;
  WaitForNews(heartbeat_);
}

void SimServer::WaitForNews(nanoseconds timeout) {
  if (std::exchange(news_, false)) return Report();
  waiting_ = true;
  After(timeout, [this, wait = ++wait_] {
    if (!waiting_ || wait != wait_) return;
    waiting_ = false;
    news_ = false;
    Report();
  });
}

void SimServer::Wake() {
  if (!waiting_) {
    news_ = true;
    return;
  }
  waiting_ = false;
  Report();
}

void SimServer::WakeIfNews(const Lane& lane) {
  if (lane.owned->HasNews()) Wake();
}

void SimServer::Post(Lane* lane, std::function<void()> task) {
  lane->free_at = std::max(lane->free_at, env_->scheduler.now() + Some(kLaneDelay));
  env_->scheduler.At(lane->free_at, process_, std::move(task));
}

void SimServer::PostSlice(Lane* lane, std::function<void()> task) {
  // A slice is short, but other slices run in between.
  lane->free_at = std::max(
      lane->free_at, env_->scheduler.now() + nanoseconds(slices_.Below(kSliceDelayMax.count())));
  env_->scheduler.At(lane->free_at, process_, std::move(task));
}

void SimServer::Pump(Lane* lane) {
  for (ps::LoadJob& job : lane->owned->TakeLoads(Now())) BeginLoad(lane, std::move(job));
  if (env_->knobs.slices) {
    if (!lane->copying && images_free_ > 0 && lane->owned->BeginImage(Now())) {
      --images_free_;
      lane->copying = true;
      PostSlice(lane, [this, lane] { CopyImage(lane); });
    }
    return WakeIfNews(*lane);
  }
  while (images_free_ > 0) {
    std::optional<ps::SnapshotJob> job = ps::NextSnapshot(lane->owned.get(), Now());
    if (!job.has_value()) break;
    --images_free_;
    BeginWrite(lane, *std::move(job));
  }
  WakeIfNews(*lane);
}

void SimServer::CopyImage(Lane* lane) {
  WorkLimit work(1 + slices_.Below(100));
  ps::SnapshotJob job;
  switch (lane->owned->CopyImage(&work, &job)) {
    case ps::OwnedPartitions::Copy::kMore:
      return PostSlice(lane, [this, lane] { CopyImage(lane); });
    case ps::OwnedPartitions::Copy::kGone:
      ++images_free_;
      break;
    case ps::OwnedPartitions::Copy::kDone:
      BeginWrite(lane, std::move(job));
      break;
  }
  lane->copying = false;
  Pump(lane);
}

void SimServer::BeginLoad(Lane* lane, ps::LoadJob job) {
  loader_free_ = std::max(loader_free_, env_->scheduler.now()) + Some(env_->disk.delay_max());
  env_->scheduler.At(loader_free_, process_,
                     [this, lane, job = std::move(job)] { EndLoad(lane, job); });
}

void SimServer::EndLoad(Lane* lane, const ps::LoadJob& job) {
  // What BuildPartition of lane_server.cc does.
  auto built = std::make_unique<ps::Partition>(job.partition, kJobSeed);
  auto images = env_->disk.ReadAs(job.partition, job.manifest, &torn_);
  absl::Status status = images.status();
  if (status.ok()) status = built->Restore(job.manifest.number, *images);
  auto result = std::make_shared<absl::StatusOr<std::unique_ptr<ps::Partition>>>(
      status.ok() ? absl::StatusOr<std::unique_ptr<ps::Partition>>(std::move(built)) : status);
  env_->Say(*process_, "loads partition {} from snapshot {}: {}", job.partition.value(),
            ToString(job.manifest.number), status.ok() ? "OK" : Message(status));
  Post(lane, [this, lane, job, result, marks = env_->disk.MarksOf(job.manifest.files)] {
    Probes& probes = env_->probes;
    const ps::Partition* raw = result->ok() ? (*result)->get() : nullptr;
    if (raw == nullptr) probes.Hit(Probe::kFailedLoad);
    if (raw != nullptr && raw->floor() != LeaseToken()) probes.Hit(Probe::kFloor);
    if (raw != nullptr && job.manifest.files.size() > 1) probes.Hit(Probe::kDeltaChain);
    lane->owned->Loaded(job.id, std::move(*result), Now());
    if (raw != nullptr && ps::Served(*lane->owned, job.partition) == raw) {
      env_->oracle.OnBuilt(*raw, marks);
    }
    WakeIfNews(*lane);
  });
}

void SimServer::CountImage(const ps::SnapshotJob& job) {
  images_.emplace(job.partition, job.number);
  const auto durable = env_->journal.state().partitions.find(job.partition);
  if (durable == env_->journal.state().partitions.end()) return;
  const Manifest& manifest = durable->second.manifest;
  // A base is written for other reasons, too: a first one, or after an acceptance that is not
  // known.
  if (job.image.kind == ps::SnapshotKind::kBase && !manifest.files.empty() &&
      ps::NextSnapshotKind(manifest) == ps::SnapshotKind::kBase &&
      KnowsAccepted(job.partition, manifest.number)) {
    env_->probes.Hit(Probe::kLongChain);
  }
  const auto before = imaged_.find(job.partition);
  if (before != imaged_.end() && before->second > manifest.number) {
    env_->probes.Hit(Probe::kUnacceptedDelta);
  }
  imaged_[job.partition] = job.number;
}

void SimServer::BeginWrite(Lane* lane, ps::SnapshotJob job) {
  CountImage(job);
  env_->Say(*process_, "snapshot {} of partition {}, {}", ToString(job.number),
            job.partition.value(), job.image.kind == ps::SnapshotKind::kBase ? "base" : "delta");
  env_->disk.BeginWrite(job.partition, job.epoch, job.number);
  writer_free_ = std::max(writer_free_, env_->scheduler.now()) + Some(env_->disk.delay_max());
  auto shared = std::make_shared<const ps::SnapshotJob>(std::move(job));
  env_->scheduler.At(writer_free_, process_, [this, lane, shared] {
    auto file = env_->disk.Write(shared->partition, shared->epoch, shared->number, shared->image);
    ++images_free_;
    Post(lane, [this, lane, shared, file] {
      lane->owned->Written(shared->partition, shared->number, file, Now());
      WakeIfNews(*lane);
    });
    for (Lane& each : lanes_) {
      Post(&each, [this, &each] { Pump(&each); });
    }
  });
}

}  // namespace muster::sim
