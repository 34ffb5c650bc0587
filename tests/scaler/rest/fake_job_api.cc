#include "tests/scaler/rest/fake_job_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace muster::scaler::rest::testing {
namespace {

constexpr uint64_t kBeginUs = 1'767'225'600'000'000;  // 2026-01-01
constexpr uint32_t kPartitions = 64;
constexpr uint64_t kShardsPerEpoch = 100;

Node MakeNode(const std::string& name, const std::string& role, uint64_t pid) {
  Node node{.name = name,
            .role = role,
            .state = "running",
            .pid = pid,
            .start = 1,
            .requested = {.cpus = 1, .memory_bytes = 256u << 20},
            .limits = {.cpus = 1, .memory_bytes = 256u << 20},
            .usage = Usage{.cpus = 0.75,
                           .throttled_ratio = 0.01,
                           .cpu_seconds_total = 12.5,
                           .throttled_seconds_total = 0.25,
                           .memory_bytes = 200u << 20,
                           .memory_peak_bytes = 210u << 20}};
  if (role == "worker") {
    node.worker = WorkerFigures{.records_committed = 1000,
                                .records_per_second = 98.5,
                                .minibatches = 40,
                                .shards_held = 2,
                                .computing_seconds_total = 8,
                                .waiting_shards_seconds_total = 0.5,
                                .waiting_pulls_seconds_total = 1,
                                .waiting_pushes_seconds_total = 0.25};
  } else if (role == "ps") {
    node.server = ServerFigures{.partitions = kPartitions / 2,
                                .partitions_serving = kPartitions / 2,
                                .rows = 1234,
                                .row_bytes = 56789,
                                .pulls = 300,
                                .pulled_rows = 40000,
                                .parts_applied = 5000,
                                .serving_seconds_total = 3.5};
  }
  return node;
}

}  // namespace

FakeJobApi::FakeJobApi() {
  job_ = {.name = "flights",
          .id = "1f6c",
          .master_incarnation = 1,
          .uptime_ms = 5000,
          .seen_wall_us = kBeginUs,
          .progress = {.records_expected = 20000,
                       .records_done = 4000,
                       .records_committed = 3000,
                       .records_per_second = 197,
                       .remaining_seconds = 81.2},
          .counters = {{"redelivered_minibatches", 3}, {"replayed_shards", 1}},
          .scaler_started_wall_us = kBeginUs};
  const ShardCounts counts{
      .total = kShardsPerEpoch, .todo = 64, .leased = 4, .done = 10, .committed = 20, .failed = 2};
  const Epoch epoch{.records_expected = 10000,
                    .records_done = 3000,
                    .records_committed = 2000,
                    .rejected_records = 1,
                    .reject_samples = {"train.csv:17: no number"},
                    .metrics = {{"loss", 0.25}},
                    .shards = counts};
  datasets_ = {{.name = "train", .epochs_total = 2, .epochs = {epoch, epoch}},
               {.index = 1, .name = "test", .mode = "evaluate", .epochs_total = 1}};
  datasets_[0].epochs[1].epoch = 1;
  for (uint64_t i = 0; i < 16; ++i) {
    shards_.push_back({.id = fmt::format("0/0/{}", i),
                       .dataset = "train",
                       .index = i,
                       .state = i < 2   ? "failed"
                                : i < 6 ? "leased"
                                        : "done",
                       .worker = i >= 2 && i < 6 ? "worker-0" : "",
                       .source = "train.csv",
                       .first_record = i * 100,
                       .records = 100,
                       .first_line = i * 100 + 1});
  }
  shards_[0].reasons = {"exit 1", "a \"quoted\" reason\nof two lines"};
  nodes_ = {MakeNode("master", "master", 100), MakeNode("ps-0", "ps", 101),
            MakeNode("ps-1", "ps", 102), MakeNode("worker-0", "worker", 103),
            MakeNode("worker-1", "worker", 104)};
  policies_ = {{.name = "out-of-memory",
                .summary = "Relaunches bigger what the kernel killed",
                .cooldown_s = 60,
                .options = {{"factor", 1.5}}},
               {.name = "straggler", .summary = "Moves what is slow", .dry_run = true}};
}

Event FakeJobApi::Add(Event event) {
  event.id = events_.size() + 1;
  event.wall_us = kBeginUs + event.id * 1000;
  events_.push_back(event);
  job_.last_event_id = event.id;
  return event;
}

Event FakeJobApi::Act(const std::string& action, const std::string& target,
                      const std::string& reason) {
  return Add({.kind = "action",
              .target = target,
              .action = action,
              .because = reason.empty() ? "asked for by a person" : reason});
}

void FakeJobApi::AddEvent(size_t bytes) {
  const MutexLock lock(&mutex_);
  Add({.kind = "decision",
       .policy = "out-of-memory",
       .target = "ps-0",
       .action = "relaunch",
       .before = {{"memory_bytes", 268435456}},
       .after = {{"memory_bytes", 402653184}},
       .evidence = {{"memory_peak", 268435456, "bytes", 30}},
       .because = std::string(bytes, 'x')});
}

void FakeJobApi::Hold() {
  const MutexLock lock(&mutex_);
  held_ = true;
}

void FakeJobApi::Release() {
  const MutexLock lock(&mutex_);
  held_ = false;
  changed_.SignalAll();
}

void FakeJobApi::AwaitAnotherEventCall() {
  const MutexLock lock(&mutex_);
  const uint64_t before = event_calls_;
  while (event_calls_ == before) changed_.Wait(&mutex_);
}

void FakeJobApi::AwaitJobCalls(uint64_t count) {
  const MutexLock lock(&mutex_);
  while (job_calls_ < count) changed_.Wait(&mutex_);
}

void FakeJobApi::Fail(absl::Status status) {
  const MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

absl::StatusOr<Job> FakeJobApi::GetJob() {
  const MutexLock lock(&mutex_);
  ++job_calls_;
  changed_.SignalAll();
  while (held_) changed_.Wait(&mutex_);
  MUSTER_RETURN_IF_ERROR(failure_);
  return job_;
}

absl::StatusOr<DatasetList> FakeJobApi::Datasets() {
  const MutexLock lock(&mutex_);
  return DatasetList{datasets_};
}

absl::StatusOr<ShardPage> FakeJobApi::Shards(const ShardQuery& query) {
  const MutexLock lock(&mutex_);
  ShardPage page{.total = 0, .offset = query.offset, .shards = {}};
  for (const Shard& shard : shards_) {
    if (!query.state.empty() && shard.state != query.state) continue;
    if (page.total++ < query.offset || page.shards.size() >= query.limit) continue;
    page.shards.push_back(shard);
  }
  return page;
}

absl::StatusOr<ShardMap> FakeJobApi::MapOfShards(uint32_t dataset, uint32_t epoch) {
  const MutexLock lock(&mutex_);
  if (dataset >= datasets_.size() || epoch >= datasets_[dataset].epochs.size()) {
    return absl::NotFoundError(fmt::format("dataset {} has no epoch {}", dataset, epoch));
  }
  return ShardMap{.dataset = dataset,
                  .epoch = epoch,
                  .shards = kShardsPerEpoch,
                  .runs = {{0, 2, "failed"},
                           {2, 6, "leased"},
                           {6, 16, "done"},
                           {16, 36, "committed"},
                           {36, kShardsPerEpoch, "todo"}}};
}

absl::StatusOr<Node*> FakeJobApi::Find(const std::string& node) {
  const auto at = std::ranges::find(nodes_, node, &Node::name);
  if (at == nodes_.end()) {
    return absl::NotFoundError(fmt::format("there is no node '{}'; see /api/v1/nodes", node));
  }
  return &*at;
}

absl::StatusOr<NodeList> FakeJobApi::Nodes() {
  const MutexLock lock(&mutex_);
  return NodeList{nodes_};
}

absl::StatusOr<Node> FakeJobApi::GetNode(const std::string& node) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(const Node* found, Find(node));
  return *found;
}

absl::StatusOr<LogChunk> FakeJobApi::Logs(const std::string& node, const LogQuery& query) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(const Node* found, Find(node));
  constexpr uint64_t kLines = 200;
  constexpr uint64_t kLineBytes = 9;  // "line 007\n"
  const uint64_t asked =
      query.offset ? *query.offset / kLineBytes : kLines - std::min<uint64_t>(query.lines, kLines);
  const uint64_t first = std::min(asked, kLines);
  const uint64_t end = std::min<uint64_t>(first + query.lines, kLines);
  LogChunk chunk{.node = found->name,
                 .offset = first * kLineBytes,
                 .next_offset = end * kLineBytes,
                 .skipped = asked > kLines,
                 .lines = {}};
  for (uint64_t i = first; i < end; ++i) chunk.lines.push_back(fmt::format("line {:03}", i));
  return chunk;
}

absl::StatusOr<PartitionPage> FakeJobApi::Partitions(uint64_t offset, uint32_t limit) {
  PartitionPage page{.total = kPartitions, .offset = offset, .partitions = {}};
  for (uint64_t i = offset; i < kPartitions && page.partitions.size() < limit; ++i) {
    page.partitions.push_back({.partition = static_cast<uint32_t>(i),
                               .owner = fmt::format("ps-{}", i % 2),
                               .epoch = 1,
                               .state = "serving",
                               .rows = 20 + i,
                               .row_bytes = 900,
                               .service_seconds_total = 0.125});
  }
  return page;
}

absl::StatusOr<EventList> FakeJobApi::Events(uint64_t after, uint32_t limit) {
  const MutexLock lock(&mutex_);
  ++event_calls_;
  changed_.SignalAll();
  EventList list{.events = {}, .next_after = after};
  for (uint64_t i = after; i < events_.size() && list.events.size() < limit; ++i) {
    list.events.push_back(events_[i]);
    list.next_after = events_[i].id;
  }
  return list;
}

absl::StatusOr<Explanation> FakeJobApi::Explain(uint64_t event_id) {
  const MutexLock lock(&mutex_);
  if (event_id == 0 || event_id > events_.size()) {
    return absl::NotFoundError(fmt::format("there is no event {}", event_id));
  }
  return Explanation{.event = events_[event_id - 1], .cause = std::nullopt, .effects = {}};
}

absl::StatusOr<Samples> FakeJobApi::GetSamples(const SampleQuery& query) {
  const MutexLock lock(&mutex_);
  if (!query.node.empty()) {
    MUSTER_RETURN_IF_ERROR(Find(query.node).status());
  }
  Samples samples;
  SampleSeries series{.node = "worker-0", .name = "rate", .unit = "records/s", .values = {}};
  for (int i = 0; i < 10; ++i) {
    const uint64_t at = kBeginUs + static_cast<uint64_t>(i) * 1'000'000;
    if (at <= query.after_wall_us) continue;
    samples.times_us.push_back(at);
    series.values.push_back(i == 0 ? std::numeric_limits<double>::quiet_NaN() : 100.5 + i);
  }
  samples.series.push_back(std::move(series));
  return samples;
}

absl::StatusOr<PolicyList> FakeJobApi::Policies() {
  const MutexLock lock(&mutex_);
  return PolicyList{policies_};
}

absl::StatusOr<Event> FakeJobApi::Drain(const std::string& reason) {
  const MutexLock lock(&mutex_);
  job_.state = "draining";
  return Act("drain", "job", reason);
}

absl::StatusOr<Event> FakeJobApi::Cancel(const std::string& reason) {
  const MutexLock lock(&mutex_);
  job_.state = "cancelled";
  return Act("cancel", "job", reason);
}

absl::StatusOr<Event> FakeJobApi::RestartNode(const std::string& node, const RestartOrder& order) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(Node* const found, Find(node));
  if (order.only_start && *order.only_start != found->start) {
    return absl::AbortedError(
        fmt::format("{} has start {}, not {}", node, found->start, *order.only_start));
  }
  ++found->start;
  ++found->restarts;
  return Act("relaunch", node, order.reason);
}

absl::StatusOr<Event> FakeJobApi::DrainNode(const std::string& node, const std::string& reason) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(Node* const found, Find(node));
  found->drain = "draining";
  return Act("drain", node, reason);
}

absl::StatusOr<Event> FakeJobApi::ResizeNode(const std::string& node, const ResizeOrder& order) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(Node* const found, Find(node));
  if (order.cpus) found->limits.cpus = *order.cpus;
  if (order.memory_bytes) found->limits.memory_bytes = *order.memory_bytes;
  return Act("set-limits", node, order.reason);
}

absl::StatusOr<Event> FakeJobApi::ScaleWorkers(uint32_t workers, const std::string& reason) {
  constexpr uint32_t kWorkersMax = 8;
  if (workers > kWorkersMax) {
    return absl::ResourceExhaustedError(
        fmt::format("{} workers are more than the job's budget of {}", workers, kWorkersMax));
  }
  const MutexLock lock(&mutex_);
  return Act("set-workers", "job", reason);
}

absl::StatusOr<Event> FakeJobApi::RetryShards(const std::vector<std::string>& ids) {
  const MutexLock lock(&mutex_);
  for (const std::string& id : ids) {
    const auto at = std::ranges::find(shards_, id, &Shard::id);
    if (at == shards_.end() || at->state != "failed") {
      return absl::FailedPreconditionError(fmt::format("shard {} is not FAILED", id));
    }
  }
  return Act("retry-shards", "job", "");
}

absl::StatusOr<Event> FakeJobApi::SetPaused(const std::string& policy, bool paused,
                                            const std::string& reason) {
  const MutexLock lock(&mutex_);
  const auto at = std::ranges::find(policies_, policy, &Policy::name);
  if (at == policies_.end()) {
    return absl::NotFoundError(fmt::format("there is no policy '{}'", policy));
  }
  at->paused = paused;
  return Act(paused ? "pause-policy" : "resume-policy", policy, reason);
}

absl::StatusOr<Event> FakeJobApi::PausePolicy(const std::string& policy,
                                              const std::string& reason) {
  return SetPaused(policy, true, reason);
}

absl::StatusOr<Event> FakeJobApi::ResumePolicy(const std::string& policy,
                                               const std::string& reason) {
  return SetPaused(policy, false, reason);
}

}  // namespace muster::scaler::rest::testing
