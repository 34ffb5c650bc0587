#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/master/core/core_fixture.h"

namespace muster::testing {

inline constexpr DatasetId kClicks{0};

/// One stream "clicks": ranges of 20 offsets, two minibatches each; a partial one after a second.
class StreamsTest : public ::testing::Test, protected CoreFixture {
 protected:
  StreamsTest() {
    DatasetPlan plan{"clicks", DatasetMode::kTrain, 1, 0, 0, 10, nullptr};
    plan.stream = StreamPlan{
        "click-topic",
        {.minibatch_size = 10, .minibatches_per_shard = 2, .max_delay = std::chrono::seconds(1)},
        /*open_ranges_max=*/4};
    options.datasets = {plan};
    options.leases.duration =
        std::chrono::seconds(100);  // who is silent while time passes keeps its leases
  }
  void Look(StreamLook look) {
    look.dataset = kClicks;
    core->TakeLook(look, {now, wall});
    Sync();
  }
  /// A look at topic partition 0.
  void See(uint64_t log_begin, uint64_t stable_end, std::optional<uint64_t> end = {}) {
    Look({.partitions = {{TopicPartition(0), log_begin, stable_end, {}, end}}});
  }
  /// Enough looks without the topic, over enough time, that it counts as gone.
  void FindNone() {
    for (int i = 0; i < 3; ++i) {
      if (i > 0) Advance(std::chrono::seconds(1));
      Look({.error = "there is no topic 'click-topic'", .gone = true});
    }
  }
  StreamTable::Progress Progress(size_t partition = 0) const {
    return core->ledger().streams().ProgressOf(kClicks).at(partition);
  }
  /// Reports the grants done, each with so many records, while others are held.
  void DoneWith(const std::vector<ShardGrant>& grants, uint64_t records,
                const std::vector<ShardGrant>& others = {}) {
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    Hold(others, &request);
    for (const ShardGrant& grant : grants) {
      DoneReport done{grant.shard, grant.token, grant.restore_epoch, {}, {}};
      done.metrics.records = records;
      request.done.push_back(done);
    }
    for (const DoneVerdict& verdict : Exchange(request).verdicts) {
      EXPECT_EQ(verdict.code, DoneCode::kAccepted);
    }
  }
  /// Everything DONE becomes COMMITTED.
  void Commit() {
    Advance(options.snapshot_interval);
    while (Snapshot() > 0) {
    }
  }
  std::vector<std::string> Events(const std::string& kind) const {
    std::vector<std::string> texts;
    for (const auto& [number, event] : core->events().events()) {
      if (event.kind == kind) texts.push_back(event.text);
    }
    return texts;
  }
  static std::vector<std::pair<uint64_t, uint64_t>> Ranges(const std::vector<ShardGrant>& grants) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const ShardGrant& grant : grants) {
      for (const OffsetRange& range : grant.work.stream->ranges) {
        ranges.emplace_back(range.begin, range.end);
      }
    }
    return ranges;
  }
  using Offsets = std::pair<uint64_t, uint64_t>;

  WallTime wall{std::chrono::seconds(1'000)};
};

}  // namespace muster::testing
