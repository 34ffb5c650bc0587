#include "ps/service/lane_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace muster::ps {
namespace {

/// Exchanges may follow each other closely. This is how often one includes traffic.
constexpr std::chrono::milliseconds kTrafficSpacing{500};

/// Work of one slice of an image.
constexpr uint64_t kImageSliceBytes = 4u << 20;

/// The least time between two log lines about mistakes of peers. Peers after their hello, and all
/// others, have a throttle each.
constexpr std::chrono::seconds kRefusalSpacing{5};

/// Reads and rebuilds a partition; on a thread of the restorer.
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

/// True if a partition must be rebuilt from a snapshot. Otherwise, new partitions begin empty.
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
    : lane_(lane),
      lane_count_(lane_count),
      context_(context),
      refused_peers_(kRefusalSpacing),
      refused_strangers_(kRefusalSpacing),
      net_(std::move(options), this) {}

LaneServer::~LaneServer() {
  Stop();
}

absl::StatusOr<std::vector<std::string>> LaneServer::Listen() {
  return net_.Listen();
}

void LaneServer::Start(const RegisterServerReply& registered) {
  registered_ = registered;
  owned_.emplace(OwnedPartitions::Options{.job_seed = registered.seed,
                                          .partition_count = registered.partition_count,
                                          .lane = lane_,
                                          .lane_count = lane_count_,
                                          .retry_pause = context_->retry_pause});
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
  net_.Post([this, table, rows = std::move(rows)] {
    owned_->SetWarmStart(table, rows);
    Pump();
  });
}

void LaneServer::PostCommands(LaneCommands commands) {
  net_.Post([this, commands = std::move(commands)] {
    PassBefore(commands);
    owned_->Apply(commands);
    PassAfter(commands);
    DropGarbage();
    Pump();
  });
}

void LaneServer::PostReport(uint64_t sequence, std::function<void(LaneReport)> done) {
  net_.Post([this, sequence, done = std::move(done)] { done(Report(sequence)); });
}

LaneReport LaneServer::Report(uint64_t sequence) {
  DropGarbage();
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
  for (FillJob& job : owned_->TakeFills()) BeginFill(std::move(job));
  if (!copying_ && context_->images->TryTake()) {
    copying_ = owned_->BeginImage(now);
    if (copying_) {
      net_.Post([this] { CopyImage(); });
    } else {
      context_->images->Give();
    }
  }
  WakeIfNews();
}

void LaneServer::CopyImage() {
  WorkLimit work(kImageSliceBytes);
  SnapshotJob job;
  switch (owned_->CopyImage(&work, &job)) {
    case OwnedPartitions::Copy::kMore:
      return net_.Post([this] { CopyImage(); });
    case OwnedPartitions::Copy::kGone:
      context_->images->Give();
      break;
    case OwnedPartitions::Copy::kDone:
      BeginWrite(std::move(job));
      break;
  }
  copying_ = false;
  Pump();
}

void LaneServer::DropGarbage() {
  Garbage garbage = owned_->TakeGarbage();
  if (!garbage.empty()) context_->loader->Post([garbage = std::move(garbage)] {});
}

void LaneServer::BeginLoad(LoadJob job) {
  context_->restorer->Post([this, job = std::move(job), seed = registered_.seed] {
    auto built = std::make_shared<absl::StatusOr<std::unique_ptr<Partition>>>(
        BuildPartition(context_->storage, job, seed));
    net_.Post([this, id = job.id, built] {
      const bool failed = !built->ok();
      owned_->Loaded(id, std::move(*built), context_->clock->Now());
      if (failed) PumpAfterPause();
      MUSTER_FAILPOINT("restore.after-serve");
      Pump();
    });
  });
}

void LaneServer::BeginFill(FillJob job) {
  context_->loader->Post([this, job = std::move(job), seed = registered_.seed] {
    auto table = std::make_shared<std::unique_ptr<Table>>(
        Table::Filled(job.table, seed, job.partition, *job.rows));
    net_.Post([this, job, table] {
      owned_->Filled(job, std::move(*table));
      WakeIfNews();
    });
  });
}

void LaneServer::PumpAfterPause() {
  net_.PostAfter(context_->retry_pause, [this] { Pump(); });
}

void LaneServer::BeginWrite(SnapshotJob job) {
  MUSTER_FAILPOINT("snapshot.after-copy");
  auto shared = std::make_shared<SnapshotJob>(std::move(job));
  context_->writer->Post([this, shared]() mutable {
    auto file =
        context_->storage->Write(shared->partition, shared->epoch, shared->number, shared->image);
    const PartitionId partition = shared->partition;
    const SnapshotNumber number = shared->number;
    shared.reset();  // frees the image's memory before its slot is reused
    context_->images->Give();
    net_.Post([this, partition, number, file = std::move(file)] {
      MUSTER_FAILPOINT("snapshot.before-report");
      owned_->Written(partition, number, file, context_->clock->Now());
      if (!file.ok()) PumpAfterPause();
      WakeIfNews();
    });
    context_->pump_all();
  });
}

void LaneServer::WakeIfNews() {
  if (owned_->HasNews()) context_->wake();
}

absl::StatusOr<wire::HelloReply> LaneServer::OnHello(const wire::Hello& hello) {
  MUSTER_RETURN_IF_ERROR(CheckJobIdentity({"this server", hello.peer}, JobOf(registered_),
                                          {hello.job_id, hello.job}, UnnamedJob::kRefuse));
  return wire::HelloReply{.server_incarnation = registered_.incarnation.value(),
                          .partition_count = registered_.partition_count,
                          .lane = lane_,
                          .lane_count = lane_count_};
}

void LaneServer::OnRefused(const Refusal& refusal) {
  LogThrottle& throttle = refusal.greeted ? refused_peers_ : refused_strangers_;
  const std::optional<uint64_t> left_out = throttle.Admit(context_->clock->Now());
  if (!left_out.has_value()) return;
  Log(LogLevel::kWarning, "lane {}: {} {}: {}{}", lane_,
      refusal.closed ? "ends the connection of" : "refuses a request of", refusal.peer,
      Printable(refusal.reason),
      *left_out == 0 ? "" : fmt::format(" ({} more were not logged)", *left_out));
}

Progress LaneServer::OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) {
  return owned_->Pull(request, slice, reply, static_cast<RequestProgress*>(slice.notes));
}

Progress LaneServer::OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) {
  if (slice.first) MUSTER_FAILPOINT("push.before-apply");
  const Progress progress =
      owned_->Push(request, slice, reply, static_cast<RequestProgress*>(slice.notes));
  // Do this before another part begins in that partition. Otherwise, an image might wait without
  // end.
  if (owned_->TakeImageReady()) Pump();
  if (progress == Progress::kDone) MUSTER_FAILPOINT("push.before-reply");
  return progress;
}

}  // namespace muster::ps
