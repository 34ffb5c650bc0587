#include "ps/service/lane_server.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"

namespace muster::ps {
namespace {

/// Reads and rebuilds a partition; on the loader's thread.
absl::StatusOr<std::unique_ptr<Partition>> BuildPartition(Storage* storage, const LoadJob& job,
                                                          uint64_t seed) {
  const std::string context = fmt::format("cannot restore partition {} from snapshot {}",
                                          job.partition.value(), ToString(job.manifest.number));
  auto images = storage->Read(job.partition, job.manifest);
  if (!images.ok()) return Annotate(images.status(), context);
  auto partition = std::make_unique<Partition>(job.partition, seed);
  MUSTER_RETURN_IF_ERROR_PREPEND(partition->Restore(job.manifest.number, *images), context);
  return partition;
}

}  // namespace

LaneServer::LaneServer(LaneOptions options, uint32_t lane, uint32_t lane_count,
                       const LaneContext* context)
    : lane_(lane), lane_count_(lane_count), context_(context), net_(std::move(options), this) {}

LaneServer::~LaneServer() {
  Stop();
}

absl::StatusOr<std::vector<std::string>> LaneServer::Listen() {
  return net_.Listen();
}

void LaneServer::Start(const ServerIdentity& identity) {
  identity_ = identity;
  owned_.emplace(OwnedPartitions::Options{.job_seed = identity.seed,
                                          .partition_count = identity.partition_count,
                                          .lane = lane_,
                                          .lane_count = lane_count_});
  net_.Start();
}

void LaneServer::Stop() {
  net_.Stop();
}

void LaneServer::PostTable(const TableSpec& table) {
  net_.Post([this, table] {
    owned_->AddTable(table);
    WakeIfNews();
  });
}

void LaneServer::PostWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
  net_.Post([this, table, rows = std::move(rows)] { owned_->SetWarmStart(table, rows); });
}

void LaneServer::PostCommands(LaneCommands commands) {
  net_.Post([this, commands = std::move(commands)] {
    owned_->Apply(commands);
    Pump();
  });
}

void LaneServer::PostReport(uint64_t sequence, std::function<void(LaneReport)> done) {
  net_.Post([this, sequence, done = std::move(done)] { done(owned_->Report(sequence)); });
}

void LaneServer::PostPump() {
  net_.Post([this] { Pump(); });
}

void LaneServer::Pump() {
  const TimePoint now = context_->clock->Now();
  for (LoadJob& job : owned_->TakeLoads(now)) BeginLoad(std::move(job));
  while (context_->images->TryTake()) {
    std::optional<SnapshotJob> job = owned_->NextSnapshot(now);
    if (!job.has_value()) {
      context_->images->Give();
      break;
    }
    BeginWrite(*std::move(job));
  }
  WakeIfNews();
}

void LaneServer::BeginLoad(LoadJob job) {
  context_->loader->Post([this, job = std::move(job), seed = identity_.seed] {
    auto built = std::make_shared<absl::StatusOr<std::unique_ptr<Partition>>>(
        BuildPartition(context_->storage, job, seed));
    net_.Post([this, id = job.id, built] {
      owned_->Loaded(id, std::move(*built), context_->clock->Now());
      WakeIfNews();
    });
  });
}

void LaneServer::BeginWrite(SnapshotJob job) {
  auto shared = std::make_shared<SnapshotJob>(std::move(job));
  context_->writer->Post([this, shared]() mutable {
    auto file =
        context_->storage->Write(shared->partition, shared->epoch, shared->number, shared->image);
    const PartitionId partition = shared->partition;
    const SnapshotNumber number = shared->number;
    shared.reset();  // the image's memory, before its slot is given to another
    context_->images->Give();
    net_.Post([this, partition, number, file = std::move(file)] {
      owned_->Written(partition, number, file, context_->clock->Now());
      WakeIfNews();
    });
    context_->pump_all();
  });
}

void LaneServer::WakeIfNews() {
  if (owned_->HasNews()) context_->wake();
}

absl::StatusOr<wire::HelloReply> LaneServer::OnHello(const wire::Hello& hello) {
  MUSTER_RETURN_IF_ERROR(CheckJobIdentity({"this server", hello.peer}, identity_.job,
                                          {hello.job_id, hello.job}, UnnamedJob::kRefuse));
  return wire::HelloReply{.server_incarnation = identity_.reply.incarnation.value(),
                          .partition_count = identity_.partition_count,
                          .lane = lane_,
                          .lane_count = lane_count_};
}

void LaneServer::OnPull(const PullRequest& request, PullReply* reply) {
  owned_->Pull(request, reply);
}

void LaneServer::OnPush(const PushRequest& request, PushReply* reply) {
  owned_->Push(request, reply);
}

}  // namespace muster::ps
