#include "scaler/service/live_job_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "admin/shard_id.h"
#include "base/status.h"
#include "base/text.h"
#include "proto/status/joined_node.h"

namespace muster::scaler {
namespace {

constexpr uint64_t kLogBytesMax = 1 << 20;
/// The most calls to the master at a time. With kAtLogsMax, it makes the six that rest::JobApi
/// promises.
constexpr int kAtMasterMax = 4;
/// The most calls for logs at a time. Logs of pods come from the API server, which may be slow.
constexpr int kAtLogsMax = 2;
constexpr std::chrono::milliseconds kGatePatience{300};
/// The most runs in one map. A page can draw that many, and they take 10 answers of the master.
constexpr int kMapRunsMax = 100'000;
/// The most shards that one order puts back. One answer of the master can name that many.
constexpr uint64_t kRetryMax = 100'000;
constexpr uint32_t kFailedPage = 10'000;

constexpr const char* kAway =
    "the master does not answer; if it has ended, muster run starts it again";

/// People do not understand the texts of gRPC itself. If the master answered, its own text is kept.
absl::Status ForPeople(const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError("the master did not answer in time; try again");
  }
  if (!absl::IsUnavailable(status) && !absl::IsUnknown(status)) return status;
  for (const std::string_view own : {"connect", "Connection", "Socket closed", "GOAWAY", "recvmsg",
                                     "Broken pipe", "Stream removed", "ipv4:", "ipv6:"}) {
    if (Message(status).find(own) != std::string_view::npos) return absl::UnavailableError(kAway);
  }
  return status;
}

std::optional<double> Known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Appends the runs of `page`. The page begins where the runs in `map` end.
void AppendShardRuns(const ShardMap& page, ShardMap* map) {
  map->shards = page.shards;
  for (const ShardRun& run : page.runs) {
    if (!map->runs.empty() && map->runs.back().state == run.state) {
      map->runs.back().end = run.end;  // pages may divide a run
    } else {
      map->runs.push_back(run);
    }
  }
}

void AddRates(const PartitionRate& rate, rest::Partition* partition) {
  partition->pulls_per_second = Known(rate.pulls);
  partition->pushes_per_second = Known(rate.pushes);
  partition->bytes_per_second = Known(rate.bytes);
  partition->service_ratio = Known(rate.service_us / 1e6);
}

}  // namespace

void PictureBoard::Hang(Picture picture) {
  auto fresh = std::make_shared<const Picture>(std::move(picture));
  MutexLock lock(&mutex_);
  picture_.swap(fresh);
}

std::shared_ptr<const Picture> PictureBoard::Look() const {
  MutexLock lock(&mutex_);
  return picture_;
}

LiveJobApi::LiveJobApi(Options options, const PictureBoard* board, const EventLog* events,
                       AdminClient* master, CallQueue* calls, OrderTaker* orders)
    : options_(std::move(options)),
      board_(board),
      events_(events),
      master_(master),
      calls_(calls),
      orders_(orders),
      at_master_(kAtMasterMax),
      at_logs_(kAtLogsMax) {}

bool LiveJobApi::Gate::Enter() {
  MutexLock lock(&mutex_);
  if (inside_ >= max_) left_.WaitFor(&mutex_, kGatePatience);
  if (inside_ >= max_) return false;
  ++inside_;
  return true;
}

void LiveJobApi::Gate::Leave() {
  MutexLock lock(&mutex_);
  --inside_;
  left_.SignalAll();
}

template <typename Answer>
absl::StatusOr<Answer> LiveJobApi::AskMaster(const std::function<absl::StatusOr<Answer>()>& ask) {
  if (!board_->Look()->job.master_reachable) {
    return absl::UnavailableError(kAway);
  }
  if (!at_master_.Enter()) {
    return absl::UnavailableError("too many requests wait for the master; try again");
  }
  absl::Cleanup leave = [this] { at_master_.Leave(); };
  absl::StatusOr<Answer> answer = ask();
  if (!answer.ok()) return ForPeople(answer.status());
  return answer;
}

absl::StatusOr<std::shared_ptr<const rest::Picture>> LiveJobApi::Look() {
  std::shared_ptr<const rest::Picture> picture = board_->Look();
  const uint64_t newest = events_->last_id();
  if (picture->job.last_event_id == newest) return picture;
  auto fresh = std::make_shared<rest::Picture>(*picture);
  fresh->job.last_event_id = newest;
  return fresh;
}

absl::StatusOr<ShardPage> LiveJobApi::Shards(const rest::ShardQuery& query) {
  v1::ListShardsRequest request;
  request.set_state(query.state);
  request.set_offset(query.offset);
  request.set_limit(query.limit);
  return AskMaster<ShardPage>([&] { return master_->ListShards(request); });
}

absl::StatusOr<ShardMap> LiveJobApi::MapOfShards(uint32_t dataset, uint32_t epoch) {
  ShardMap map{.dataset = dataset, .epoch = epoch, .shards = 0, .runs = {}};
  v1::GetShardMapRequest request;
  request.set_dataset(dataset);
  request.set_epoch(epoch);
  do {
    MUSTER_ASSIGN_OR_RETURN(const ShardMap page,
                            AskMaster<ShardMap>([&] { return master_->GetShardMap(request); }));
    AppendShardRuns(page, &map);
    if (page.runs.empty()) break;
    request.set_begin(map.runs.back().end);
  } while (request.begin() < map.shards && map.runs.size() < kMapRunsMax);
  return map;
}

absl::StatusOr<rest::LogChunk> LiveJobApi::Logs(const std::string& node,
                                                const rest::LogQuery& query) {
  // The name becomes a part of a path, so it must be that of a node of the job.
  MUSTER_RETURN_IF_ERROR(HasNode(node));
  if (!at_logs_.Enter()) {
    return absl::UnavailableError("too many requests wait for logs; try again");
  }
  const absl::Cleanup leave = [this] { at_logs_.Leave(); };
  absl::StatusOr<LogPiece> piece = options_.host->ReadLog(
      node, {.offset = query.offset, .lines = query.lines, .bytes_max = kLogBytesMax});
  rest::LogChunk chunk{.node = node};
  if (absl::IsNotFound(piece.status())) return chunk;  // the node has not started yet
  MUSTER_RETURN_IF_ERROR(piece.status());
  chunk.offset = piece->offset;
  chunk.next_offset = piece->next_offset;
  chunk.skipped = piece->skipped;
  for (const std::string& line : piece->lines) chunk.lines.push_back(ValidUtf8(line));
  return chunk;
}

absl::StatusOr<rest::PartitionPage> LiveJobApi::Partitions(uint64_t offset, uint32_t limit) {
  v1::ListPartitionsRequest request;
  request.set_offset(offset);
  request.set_limit(limit);
  MUSTER_ASSIGN_OR_RETURN(const PartitionList list, AskMaster<PartitionList>([&] {
                            return master_->ListPartitions(request);
                          }));
  rest::PartitionPage page{.total = list.total, .offset = list.offset, .partitions = {}};
  const std::shared_ptr<const Picture> picture = board_->Look();
  for (const PartitionStatus& partition : list.partitions) {
    page.partitions.push_back(rest::Partition{partition});
    const auto rate = picture->partition_rates.find(partition.partition);
    if (rate != picture->partition_rates.end()) AddRates(rate->second, &page.partitions.back());
  }
  return page;
}

absl::StatusOr<rest::EventList> LiveJobApi::Events(uint64_t after, uint32_t limit) {
  return events_->Events(after, limit);
}

absl::StatusOr<rest::Explanation> LiveJobApi::Explain(uint64_t event_id) {
  return events_->Explain(event_id);
}

absl::StatusOr<rest::Samples> LiveJobApi::GetSamples(const rest::SampleQuery& query) {
  if (!query.node.empty()) MUSTER_RETURN_IF_ERROR(HasNode(query.node));
  rest::Samples samples;
  MUSTER_RETURN_IF_ERROR(
      calls_->Run([&] { samples = orders_->GiveSamples(query); }, options_.order_deadline));
  return samples;
}

absl::StatusOr<rest::Event> LiveJobApi::Give(const Wish& given) {
  Wish wish = given;
  if (auto* retry = std::get_if<RetryShards>(&wish.order)) {
    MUSTER_RETURN_IF_ERROR(Complete(retry));
  }
  absl::StatusOr<rest::Event> event = absl::InternalError("not taken");
  MUSTER_RETURN_IF_ERROR(
      calls_->Run([&] { event = orders_->Take(wish); }, options_.order_deadline));
  const bool is_masters = IsMasters(wish.order) || DrainsJoined(wish.order);
  if (!event.ok() || !is_masters) return event;
  // The event is recorded first. Only the master can judge the order, so it is asked afterwards.
  const absl::Status asked = ForPeople(AskMasterFor(wish));
  if (asked.ok()) return event;
  const std::string why(Message(asked));
  MUSTER_RETURN_IF_ERROR(
      calls_->Run([&] { orders_->FailOrder(event->id, why); }, options_.order_deadline));
  return asked;
}

absl::Status LiveJobApi::AskMasterFor(const Wish& wish) {
  if (std::holds_alternative<DrainJob>(wish.order)) return master_->Drain();
  if (std::holds_alternative<CancelJob>(wish.order)) {
    v1::CancelRequest request;
    request.set_reason(wish.reason);
    return master_->Cancel(request);
  }
  if (const auto* drain = std::get_if<EndNode>(&wish.order)) {
    v1::DrainNodeRequest request;
    request.set_node(drain->node);
    return master_->DrainNode(request).status();
  }
  v1::RetryShardsRequest request;
  for (const std::string& id : std::get<RetryShards>(wish.order).ids) {
    MUSTER_ASSIGN_OR_RETURN(*request.add_shards(), ParseShardId(id));
  }
  return master_->RetryShards(request).status();
}

bool LiveJobApi::DrainsJoined(const Order& order) const {
  const auto* const drain = std::get_if<EndNode>(&order);
  if (drain == nullptr) return false;
  const std::shared_ptr<const Picture> picture = board_->Look();
  const absl::StatusOr<const rest::Node*> node = rest::FindNode(*picture, drain->node);
  return node.ok() && IsJoined(**node);
}

absl::Status LiveJobApi::Complete(RetryShards* retry) {
  for (const std::string& id : retry->ids) {
    MUSTER_RETURN_IF_ERROR(ParseShardId(id).status());
  }
  if (retry->ids.empty()) {
    MUSTER_ASSIGN_OR_RETURN(retry->ids, FailedShards());
  }
  return retry->ids.empty() ? absl::FailedPreconditionError("no shard is FAILED")
                            : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> LiveJobApi::FailedShards() {
  std::vector<std::string> ids;
  v1::ListShardsRequest request;
  request.set_state("failed");
  request.set_limit(kFailedPage);
  while (true) {
    request.set_offset(ids.size());
    MUSTER_ASSIGN_OR_RETURN(const ShardPage page,
                            AskMaster<ShardPage>([&] { return master_->ListShards(request); }));
    for (const ShardStatus& shard : page.shards) ids.push_back(shard.id);
    if (page.shards.empty() || ids.size() >= std::min<uint64_t>(page.total, kRetryMax)) {
      return ids;
    }
  }
}

absl::Status LiveJobApi::HasNode(const std::string& node) {
  return rest::FindNode(*board_->Look(), node).status();
}

}  // namespace muster::scaler
