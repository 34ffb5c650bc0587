#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/scaler/rest/fake_job_api.h"

/// The fake job as time goes by.
namespace muster::scaler::rest::testing {
namespace {

constexpr uint64_t kRecordsPerShard = 100;
constexpr std::array<std::string_view, 5> kShardStates = {"todo", "leased", "done", "committed",
                                                          "failed"};

/// Two failed, four leased, ten done, twenty committed; of more than a hundred a tenth part more,
/// committed and done in turn: many short runs.
std::string_view FirstState(uint64_t i, uint64_t shards) {
  if (i < 2) return "failed";
  if (i < 6) return "leased";
  if (i < 16) return "done";
  if (i < 36) return "committed";
  if (shards > 100 && i < shards / 2) return i % 2 == 0 ? "committed" : "done";
  return "todo";
}

}  // namespace

/// The loss of training falls; that of the test rises again from the fourth epoch on.
void FakeJobApi::AddEpochs() {
  const EpochStatus newest = datasets_[0].epochs[0];
  DatasetStatus& train = datasets_[0];
  DatasetStatus& test = datasets_[1];
  train.epochs_total = test.epochs_total = options_.epochs;
  train.epochs.clear();
  for (uint32_t e = 0; e < options_.epochs; ++e) {
    EpochStatus epoch = newest;
    epoch.epoch = e;
    const double passed = e;
    epoch.metrics = {{"auc", 0.9 - 0.2 / (passed + 1)}, {"loss", 0.25 + 0.3 / (passed + 1)}};
    if (e + 1 < options_.epochs) {
      epoch.records_done = epoch.records_committed = epoch.records_expected;
      epoch.rejected_records = 0;
      epoch.reject_samples.clear();
    }
    train.epochs.push_back(epoch);
    if (e + 1 == options_.epochs) {
      epoch.records_done = epoch.records_committed = 0;
      epoch.metrics.clear();
    } else {
      const double away = std::abs(passed - 2);
      const double loss = std::min(0.45 + 0.02 * away, 1.0);
      epoch.metrics = {{"auc", std::max(0.816 - 0.01 * away, 0.711)}, {"loss", loss}};
      epoch.shards = {.total = options_.shards_per_epoch, .committed = options_.shards_per_epoch};
    }
    test.epochs.push_back(epoch);
  }
}

void FakeJobApi::FillShards() {
  const uint64_t shards = options_.shards_per_epoch;
  const size_t epochs = datasets_[0].epochs.size();
  states_.assign(epochs, std::vector<std::string_view>(shards, "committed"));
  for (size_t e = options_.epochs > 0 ? epochs - 1 : 0; e < epochs; ++e) {
    for (uint64_t i = 0; i < shards; ++i) states_[e][i] = FirstState(i, shards);
  }
  for (uint64_t i = 0; i < std::min<uint64_t>(16, shards); ++i) {
    const uint32_t epoch = std::max(1u, options_.epochs) - 1;
    const std::string_view state = states_[epoch][i];
    shards_.push_back({.id = fmt::format("0/{}/{}", epoch, i),
                       .dataset = "train",
                       .epoch = epoch,
                       .index = i,
                       .state = std::string(state),
                       .worker = state == "leased" ? "worker-0" : "",
                       .failures = state == "failed" ? 4u : 0u,
                       .source = "train.csv",
                       .first_record = i * kRecordsPerShard,
                       .records = kRecordsPerShard,
                       .first_line = i * kRecordsPerShard + 1});
  }
  shards_[0].reasons = {"exit 1", "a \"quoted\" reason\nof two lines"};
  CountShards();
}

void FakeJobApi::CountShards() {
  for (size_t e = 0; e < states_.size(); ++e) {
    ShardCounts& counts = datasets_[0].epochs[e].shards;
    counts = {.total = states_[e].size()};
    const std::array<uint64_t*, 5> of = {&counts.todo, &counts.leased, &counts.done,
                                         &counts.committed, &counts.failed};
    for (const std::string_view state : states_[e]) {
      ++*of[static_cast<size_t>(std::ranges::find(kShardStates, state) - kShardStates.begin())];
    }
  }
}

void FakeJobApi::AddHistory() {
  const MutexLock lock(&mutex_);
  Add({.kind = "note",
       .target = "job",
       .action = "adopted",
       .because = "the scaler was restarted"});
  const Event exit = Add({.kind = "exit",
                          .target = "ps-1",
                          .action = "exit",
                          .because = "killed by the kernel: over its memory limit"});
  Event decision{.kind = "decision",
                 .policy = "out-of-memory",
                 .target = "ps-1",
                 .action = "restart",
                 .before = {{"memory_bytes", 256.0 * (1 << 20)}},
                 .after = {{"memory_bytes", 384.0 * (1 << 20)}},
                 .evidence = {{"memory peak", 256.0 * (1 << 20), "bytes", 0},
                              {"memory limit", 256.0 * (1 << 20), "bytes", 0},
                              {"rate", 197, "records/s", 30}},
                 .because = "ps-1 was killed at its limit of 256 MiB; it gets half as much again"};
  decision.cause_id = exit.id;
  const uint64_t decided = Add(decision).id;
  Event outcome{.kind = "outcome",
                .target = "ps-1",
                .action = "restart",
                .evidence = {{"rate before", 180, "records/s", 30}, {"rate", 197, "records/s", 30}},
                .because = "serving again after 1.4 s, and the rate is back",
                .verdict = "helped"};
  outcome.cause_id = decided;
  Add(outcome);
  Add({.kind = "decision",
       .policy = "straggler",
       .target = "worker-1",
       .action = "resize",
       .before = {{"cpus", 1}},
       .after = {{"cpus", 1.5}},
       .evidence = {{"ratio to its peers", 0.41, "ratio", 60}},
       .because = "worker-1 does 41 % of what its peers do",
       .dry_run = true});
}

void FakeJobApi::EndJob(JobState state) {
  job_.state = state;
  if (!options_.live) return;
  job_.progress.records_per_second = 0;
  job_.progress.remaining_seconds.reset();
  // Nobody is there to tell of the last ends.
  for (Node& node : nodes_) {
    if (node.role != "master" && node.role != "scaler") node.state = NodeState::kExited;
  }
}

void FakeJobApi::Settle(const Pending& pending) {
  if (pending.target == "job") EndJob(pending.becomes.job);
  const auto node = std::ranges::find(nodes_, pending.target, &Node::name);
  if (node != nodes_.end()) {
    node->state = pending.becomes.node;
    if (node->drain == DrainState::kDraining) node->drain = DrainState::kDrained;
  }
  Event outcome{
      .kind = "outcome", .target = pending.target, .action = "", .because = pending.because};
  outcome.cause_id = pending.cause_id;
  outcome.verdict = "helped";
  Add(outcome);
}

/// One shard per step goes through all states.
void FakeJobApi::MoveShards() {
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"done", "committed"},
                                 {"leased", "done"},
                                 {"todo", "leased"}}) {
    std::vector<std::string_view>& epoch = states_[std::max(1u, options_.epochs) - 1];
    const auto shard = std::ranges::find(epoch, from);
    if (shard != epoch.end()) *shard = to;
  }
  CountShards();
  job_.progress.records_done += kRecordsPerShard / 4;
  job_.progress.records_committed += kRecordsPerShard / 4;
}

void FakeJobApi::MoveFigures() {
  const double wave = std::sin(static_cast<double>(step_) / 12);
  if (step_ % 4 == 0) {
    samples_.times_us.push_back(options_.begin_wall_us + step_ * 250'000);
  }
  double number = 0;
  for (Node& node : nodes_) {
    number += 1;
    if (node.state != NodeState::kRunning || !node.usage) continue;
    node.usage->cpus = 0.6 + 0.2 * wave + 0.02 * number;
    node.usage->memory_bytes = (180u << 20) + static_cast<uint64_t>(20e6 * (wave + 1));
    node.usage->memory_peak_bytes =
        std::max(node.usage->memory_peak_bytes, node.usage->memory_bytes);
    if (!node.worker) continue;
    node.records_per_second = 98 + 10 * wave - 6 * number;
    node.worker->records_committed += 12;
    WorkerTimes& times = node.worker->times;
    times.compute_us += static_cast<uint64_t>(150'000 + 50'000 * wave);
    times.wait_pull_us += 50'000;
    times.wait_push_us += 20'000;
    times.wait_shard_us += static_cast<uint64_t>(10'000 * number);
  }
  if (step_ % 4 != 0) return;
  for (const Node& node : nodes_) {
    if (node.state != NodeState::kRunning) continue;
    if (node.usage) {
      AddSample(node.name, "memory", "bytes", static_cast<double>(node.usage->memory_bytes));
    }
    if (node.worker) {
      AddSample(node.name, "records_per_second", "records/s", *node.records_per_second);
    }
  }
  for (SampleSeries& series : samples_.series) series.values.resize(samples_.times_us.size(), NAN);
}

void FakeJobApi::AddSample(const std::string& node, const std::string& name,
                           const std::string& unit, double value) {
  auto series = std::ranges::find_if(samples_.series, [&](const SampleSeries& one) {
    return one.node == node && one.name == name;
  });
  if (series == samples_.series.end()) {
    samples_.series.push_back({.node = node, .name = name, .unit = unit, .values = {}});
    series = samples_.series.end() - 1;
  }
  series->values.resize(samples_.times_us.size() - 1, NAN);
  series->values.push_back(value);
}

void FakeJobApi::Advance() {
  const MutexLock lock(&mutex_);
  ++step_;
  job_.uptime_ms += 250;
  job_.running_ms += 250;
  std::vector<Pending> due;
  std::erase_if(pending_, [&due, step = step_](const Pending& pending) {
    if (pending.step > step) return false;
    due.push_back(pending);
    return true;
  });
  for (const Pending& pending : due) Settle(pending);
  if (job_.state != JobState::kRunning) return;
  MoveShards();
  MoveFigures();
  MoveTopics();
  job_.seen_wall_us = options_.begin_wall_us + step_ * 250'000;
}

}  // namespace muster::scaler::rest::testing
