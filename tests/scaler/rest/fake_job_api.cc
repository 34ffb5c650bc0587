#include "tests/scaler/rest/fake_job_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace muster::scaler::rest::testing {

Node FakeJobApi::MakeNode(const std::string& name, const std::string& role, uint64_t pid) {
  Node node;
  node.name = name;
  node.role = role;
  node.state = NodeState::kRunning;
  node.pid = pid;
  node.start = 1;
  node.requested = node.limits = {.cpus = 1, .memory_bytes = 256u << 20};
  Usage& usage = node.usage.emplace();
  usage.cpu = std::chrono::milliseconds(12'500);
  usage.throttled = std::chrono::milliseconds(250);
  usage.memory_bytes = 200u << 20;
  usage.memory_peak_bytes = 210u << 20;
  usage.cpus = 0.75;
  usage.throttled_ratio = 0.01;
  if (role == "worker") {
    node.worker = WorkerStatus{.records_committed = 1000,
                               .shards_held = 2,
                               .times = {.wait_shard_us = 500'000,
                                         .wait_pull_us = 1'000'000,
                                         .wait_push_us = 250'000,
                                         .compute_us = 8'000'000,
                                         .minibatches_finished = 40}};
    node.records_per_second = 98.5;
  } else if (role == "ps") {
    node.server = ServerStatus{.partitions = 32,
                               .partitions_serving = 32,
                               .counters = {.pulls = 300,
                                            .pulled_rows = 40000,
                                            .parts_applied = 5000,
                                            .rows = 1234,
                                            .row_bytes = 56789,
                                            .service_us = 3'500'000}};
  }
  return node;
}

FakeJobApi::FakeJobApi(const Options& options) : options_(options) {
  job_.name = "flights";
  job_.id = "1f6c";
  job_.state = JobState::kRunning;
  job_.master_incarnation = 1;
  job_.uptime_ms = 5000;
  job_.running_ms = 65'000;
  job_.seen_wall_us = options_.begin_wall_us;
  job_.master_reachable = true;
  job_.progress = {.records_expected = 20000,
                   .records_done = 4000,
                   .records_committed = 3000,
                   .records_per_second = 197,
                   .remaining_seconds = 81.2};
  job_.counters = {.redelivered_minibatches = 3, .replayed_shards = 1};
  job_.scaler_started_wall_us = options_.begin_wall_us;
  job_.workers_wanted = 2;
  job_.snapshot_interval_s = 10;
  const EpochStatus epoch{.records_expected = 10000,
                          .records_done = 3000,
                          .records_committed = 2000,
                          .rejected_records = 1,
                          .reject_samples = {"train.csv:17: no number"},
                          .metrics = {{"loss", 0.25}},
                          .shards = {}};
  datasets_ = {{.name = "train", .epochs_total = 2, .epochs = {epoch, epoch}},
               {.index = 1, .name = "test", .mode = "evaluate", .epochs_total = 1}};
  datasets_[0].epochs[1].epoch = 1;
  if (options_.epochs > 0) AddEpochs();
  if (options_.topic_partitions > 0) AddTopics();
  if (options_.group) AddGroup();
  FillShards();
  nodes_ = {MakeNode("master", "master", 100), MakeNode("ps-0", "ps", 101),
            MakeNode("ps-1", "ps", 102), MakeNode("worker-0", "worker", 103),
            MakeNode("worker-1", "worker", 104)};
  policies_ = {{.name = "out-of-memory",
                .summary = "Restarts bigger what the kernel killed",
                .cooldown_s = 60,
                .options = {{"factor", 1.5}}},
               {.name = "straggler", .summary = "Moves what is slow", .dry_run = true}};
  if (options.live) {
    // Figures that are not known, or not yet.
    nodes_[0].usage.reset();
    nodes_[1].usage->cpus = nodes_[1].usage->throttled_ratio =
        std::numeric_limits<double>::quiet_NaN();
    nodes_[3].records_per_second = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  samples_.series = {{.node = "worker-0", .name = "rate", .unit = "records/s", .values = {}}};
  for (int i = 0; i < 10; ++i) {
    samples_.times_us.push_back(options_.begin_wall_us + static_cast<uint64_t>(i) * 1'000'000);
    samples_.series[0].values.push_back(i == 0 ? std::numeric_limits<double>::quiet_NaN()
                                               : 100.5 + i);
  }
}

Event FakeJobApi::Add(Event event) {
  event.id = events_.size() + 1;
  event.wall_us = options_.begin_wall_us + step_ * 250'000 + event.id * 1000;
  events_.push_back(event);
  job_.last_event_id = event.id;
  return event;
}

Event FakeJobApi::Act(const std::string& action, const std::string& target,
                      const std::string& reason) {
  Event event = Add({.kind = "action",
                     .target = target,
                     .action = action,
                     .because = reason.empty() ? "a person gave this order" : reason});
  if (settle_) {
    Add({.kind = "outcome",
         .target = target,
         .evidence = {{"rate before", 100, "records/s", 10}, {"rate after", 150, "records/s", 10}},
         .because = "it is done",
         .cause_id = event.id,
         .verdict = "helped"});
  }
  return event;
}

void FakeJobApi::SettleAtOnce() {
  const MutexLock lock(&mutex_);
  settle_ = true;
}

void FakeJobApi::AddEvent(size_t bytes) {
  const MutexLock lock(&mutex_);
  Add({.kind = "decision",
       .policy = "out-of-memory",
       .target = "ps-0",
       .action = "restart",
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

absl::StatusOr<std::shared_ptr<const Picture>> FakeJobApi::Look() {
  const MutexLock lock(&mutex_);
  ++job_calls_;
  changed_.SignalAll();
  while (held_) changed_.Wait(&mutex_);
  MUSTER_RETURN_IF_ERROR(failure_);
  job_.metric_trends = TrendsOf(datasets_);
  return std::make_shared<const Picture>(
      Picture{.job = job_, .datasets = {datasets_}, .nodes = {nodes_}, .policies = {policies_}});
}

absl::StatusOr<Job> FakeJobApi::GetJob() {
  MUSTER_ASSIGN_OR_RETURN(const auto picture, Look());
  return picture->job;
}

absl::StatusOr<DatasetList> FakeJobApi::Datasets() {
  MUSTER_ASSIGN_OR_RETURN(const auto picture, Look());
  return picture->datasets;
}

absl::StatusOr<ShardPage> FakeJobApi::Shards(const ShardQuery& query) {
  const MutexLock lock(&mutex_);
  ShardPage page{.total = 0, .offset = query.offset, .shards = {}};
  for (const ShardStatus& shard : shards_) {
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
  ShardMap map{.dataset = dataset, .epoch = epoch, .shards = options_.shards_per_epoch, .runs = {}};
  for (uint64_t i = 0; i < map.shards; ++i) {
    const std::string_view state = states_[epoch][i];
    if (map.runs.empty() || map.runs.back().state != state) {
      map.runs.push_back({.begin = i, .end = i, .state = std::string(state)});
    }
    map.runs.back().end = i + 1;
  }
  return map;
}

absl::StatusOr<Node*> FakeJobApi::Find(const std::string& node) {
  const auto at = std::ranges::find(nodes_, node, &Node::name);
  if (at == nodes_.end()) {
    return absl::NotFoundError(fmt::format("there is no node '{}'; see /api/v1/nodes", node));
  }
  return &*at;
}

absl::StatusOr<NodeList> FakeJobApi::Nodes() {
  MUSTER_ASSIGN_OR_RETURN(const auto picture, Look());
  return picture->nodes;
}

absl::StatusOr<Node> FakeJobApi::GetNode(const std::string& node) {
  MUSTER_ASSIGN_OR_RETURN(const auto picture, Look());
  MUSTER_ASSIGN_OR_RETURN(const Node* found, FindNode(*picture, node));
  return *found;
}

absl::StatusOr<LogChunk> FakeJobApi::Logs(const std::string& node, const LogQuery& query) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(const Node* found, Find(node));
  const uint64_t lines = 200 + step_;
  constexpr uint64_t kLineBytes = 9;  // "line 007\n"
  const uint64_t asked =
      query.offset ? *query.offset / kLineBytes : lines - std::min<uint64_t>(query.lines, lines);
  const uint64_t first = std::min(asked, lines);
  const uint64_t end = std::min<uint64_t>(first + query.lines, lines);
  LogChunk chunk{.node = found->name,
                 .offset = first * kLineBytes,
                 .next_offset = end * kLineBytes,
                 .skipped = asked > lines,
                 .lines = {}};
  for (uint64_t i = first; i < end; ++i) chunk.lines.push_back(fmt::format("line {:03}", i % 1000));
  return chunk;
}

absl::StatusOr<PartitionPage> FakeJobApi::Partitions(uint64_t offset, uint32_t limit) {
  const MutexLock lock(&mutex_);
  PartitionPage page{.total = options_.partitions, .offset = offset, .partitions = {}};
  for (uint64_t i = offset; i < options_.partitions && page.partitions.size() < limit; ++i) {
    // The first are the hottest.
    const uint64_t load = step_ * (1 + 400 / (i + 8));
    Partition& partition = page.partitions.emplace_back();
    partition.partition = static_cast<uint32_t>(i);
    partition.owner = fmt::format("ps-{}", i % 2);
    partition.owner_epoch = 1;
    partition.state = "serving";
    partition.snapshot = step_ / 40;
    partition.snapshot_age_ms = step_ % 40 * 250;
    partition.traffic = {.partition = PartitionId(partition.partition),
                         .pulls = load,
                         .pushes = load / 2,
                         .moved_bytes = load * 512,
                         .service_us = 125'000 + load * 1'000,
                         .rows = 20 + i,
                         .row_bytes = 900};
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
  Explanation explanation{.event = events_[event_id - 1], .cause = std::nullopt, .effects = {}};
  const uint64_t cause = explanation.event.cause_id;
  if (cause > 0) explanation.cause = events_[cause - 1];
  for (const Event& event : events_) {
    if (event.cause_id == event_id) explanation.effects.push_back(event);
  }
  return explanation;
}

absl::StatusOr<Samples> FakeJobApi::GetSamples(const SampleQuery& query) {
  const MutexLock lock(&mutex_);
  if (!query.node.empty()) {
    MUSTER_RETURN_IF_ERROR(Find(query.node).status());
  }
  Samples found;
  const auto newer = std::ranges::upper_bound(samples_.times_us, query.after_wall_us);
  const auto first = newer - samples_.times_us.begin();
  found.times_us.assign(newer, samples_.times_us.end());
  for (const SampleSeries& series : samples_.series) {
    if (!query.node.empty() && series.node != query.node) continue;
    found.series.push_back(series);
    found.series.back().values.erase(found.series.back().values.begin(),
                                     found.series.back().values.begin() + first);
  }
  return found;
}

absl::StatusOr<PolicyList> FakeJobApi::Policies() {
  MUSTER_ASSIGN_OR_RETURN(const auto picture, Look());
  return picture->policies;
}

}  // namespace muster::scaler::rest::testing
