#include "ps/service/lane_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"

namespace muster::ps {
namespace {

/// Exchanges may follow each other closely; traffic is in one as often as this.
constexpr std::chrono::milliseconds kTrafficSpacing{500};

/// Reads and rebuilds a partition; on the loader's thread.
absl::StatusOr<std::unique_ptr<Partition>> BuildPartition(Storage* storage, const LoadJob& job,
                                                          uint64_t seed) {
  MUSTER_FAILPOINT_OR_RETURN("restore.before-read");
  const std::string context = fmt::format("cannot restore partition {} from snapshot {}",
                                          job.partition.value(), ToString(job.manifest.number));
  auto images = storage->Read(job.partition, job.manifest);
  if (!images.ok()) return Annotate(images.status(), context);
  auto partition = std::make_unique<Partition>(job.partition, seed);
  MUSTER_RETURN_IF_ERROR_PREPEND(partition->Restore(job.manifest.number, *images), context);
  MUSTER_FAILPOINT_OR_RETURN("restore.before-serve");
  return partition;
}

/// Some partition is to be rebuilt from a snapshot; else those that are new to this server begin
/// empty.
[[maybe_unused]] bool OwnsWithSnapshot(const LaneCommands& commands) {
  return std::ranges::any_of(
      commands.owns, [](const OwnCommand& own) { return own.manifest.number != SnapshotNumber(); });
}

void PassBefore([[maybe_unused]] const LaneCommands& commands) {
  if (!commands.owns.empty()) MUSTER_FAILPOINT("own-any.before-apply");
  if (OwnsWithSnapshot(commands)) MUSTER_FAILPOINT("own.before-apply");
  if (!commands.accepted.empty()) MUSTER_FAILPOINT("accepted.before-apply");
  if (commands.forget != nullptr) MUSTER_FAILPOINT("forget.before-apply");
}

void PassAfter([[maybe_unused]] const LaneCommands& commands) {
  if (!commands.owns.empty()) MUSTER_FAILPOINT("own-any.after-apply");
  if (OwnsWithSnapshot(commands)) MUSTER_FAILPOINT("own.after-apply");
  if (!commands.accepted.empty()) MUSTER_FAILPOINT("accepted.after-apply");
  if (commands.forget != nullptr) MUSTER_FAILPOINT("forget.after-apply");
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
    MUSTER_FAILPOINT("table.before-add");
    owned_->AddTable(table);
    WakeIfNews();
  });
}

void LaneServer::PostWarmStart(TableId table, std::shared_ptr<const WarmStartSource> rows) {
  net_.Post([this, table, rows = std::move(rows)] { owned_->SetWarmStart(table, rows); });
}

void LaneServer::PostCommands(LaneCommands commands) {
  net_.Post([this, commands = std::move(commands)] {
    PassBefore(commands);
    owned_->Apply(commands);
    PassAfter(commands);
    Pump();
  });
}

void LaneServer::PostReport(uint64_t sequence, std::function<void(LaneReport)> done) {
  net_.Post([this, sequence, done = std::move(done)] { done(Report(sequence)); });
}

LaneReport LaneServer::Report(uint64_t sequence) {
  LaneReport report = owned_->Report(sequence);
  const TimePoint now = context_->clock->Now();
  if (now >= traffic_due_) {
    traffic_due_ = now + kTrafficSpacing;
    report.traffic =
        owned_->ReportTraffic(sequence, std::max<size_t>(kTrafficPerCallMax / lane_count_, 1));
  }
  return report;
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
      MUSTER_FAILPOINT("restore.after-serve");
      WakeIfNews();
    });
  });
}

void LaneServer::BeginWrite(SnapshotJob job) {
  MUSTER_FAILPOINT("snapshot.after-copy");
  auto shared = std::make_shared<SnapshotJob>(std::move(job));
  context_->writer->Post([this, shared]() mutable {
    auto file =
        context_->storage->Write(shared->partition, shared->epoch, shared->number, shared->image);
    const PartitionId partition = shared->partition;
    const SnapshotNumber number = shared->number;
    shared.reset();  // the image's memory, before its slot is given to another
    context_->images->Give();
    net_.Post([this, partition, number, file = std::move(file)] {
      MUSTER_FAILPOINT("snapshot.before-report");
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
  MUSTER_FAILPOINT("push.before-apply");
  owned_->Push(request, reply);
  MUSTER_FAILPOINT("push.before-reply");
}

}  // namespace muster::ps
