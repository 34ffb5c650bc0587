#include "sharding/shard_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.h"
#include "tests/sharding/queue_shards.h"

namespace muster {
namespace {

using testing::Done;
using ::testing::ElementsAre;
using ::testing::Optional;
using testing::Shard;

TEST(ShardQueue, RunsEpochAfterEpochWithoutABarrier) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 2}});
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 0)));
  queue.Return(Shard(0, 0, 1));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 1)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
}

TEST(ShardQueue, ADeferredShardComesAfterTheOthersOfItsEpoch) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 4}});
  for (uint64_t i = 0; i < 3; ++i) queue.Take(Shard(0, 0, i));
  for (uint64_t i = 0; i < 3; ++i) queue.Return(Shard(0, 0, i));
  queue.Defer(Shard(0, 0, 0));
  queue.Defer(Shard(0, 0, 1));
  EXPECT_EQ(queue.StateOf(Shard(0, 0, 0)), ShardState::kTodo);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 2)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 3)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_THAT(queue.Peek(), Optional(Shard(0, 0, 1)));
  queue.Return(Shard(0, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0))) << "it had its turn";
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 0)));
}

TEST(ShardQueue, NothingIsDeferredInATopicThatGrows) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 2, /*open=*/true}});
  queue.Take(Shard(0, 0, 0));
  queue.Return(Shard(0, 0, 0));
  queue.Defer(Shard(0, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0))) << "its offsets hold back all others";
}

TEST(ShardQueue, DatasetsAreMixedWithinAnEpoch) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 4}, {DatasetMode::kTrain, 1, 2}});
  std::vector<ShardId> taken;
  for (int i = 0; i < 7; ++i) taken.push_back(*queue.TakeNext());
  EXPECT_THAT(taken, ElementsAre(Shard(0, 0, 0), Shard(1, 0, 0), Shard(0, 0, 1), Shard(0, 0, 2),
                                 Shard(1, 0, 1), Shard(0, 0, 3), Shard(0, 1, 0)));
  queue.Return(Shard(0, 0, 0));
  queue.Return(Shard(1, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0))) << "what comes back has its old turn";
}

TEST(ShardQueue, WhatATopicHasGoesBeforeFiles) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 4}, {DatasetMode::kTrain, 1, 0, /*open=*/true}});
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  queue.AddShards(DatasetId(1), 1);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
}

TEST(ShardQueue, WhatAnOpenDatasetGetsLaterIsFoundBehindOtherEpochs) {
  ShardQueue queue({{DatasetMode::kTrain, 3, 1}, {DatasetMode::kTrain, 1, 0, /*open=*/true}});
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, epoch, 0)));
  }
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  queue.AddShards(DatasetId(1), 1);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
}

TEST(ShardQueue, RunsTellTheStateOfEveryShard) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 12}});
  EXPECT_THAT(queue.Runs(DatasetId(0), EpochIndex(1), 0, 99),
              ElementsAre(ShardSpan{0, 12, ShardState::kTodo}));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(queue.TakeNext().has_value());
  for (uint64_t i : {0, 1, 3}) queue.SetDone(Done(i + 1, Shard(0, 0, i)));
  queue.CommitUpTo(DoneSeq(2), 1000);
  queue.SetFailed(Shard(0, 0, 4));
  queue.Return(Shard(0, 0, 7));
  queue.Return(Shard(0, 0, 8));  // a neighbour of those that were never taken
  const std::vector<ShardSpan> runs = queue.Runs(DatasetId(0), EpochIndex(0), 0, 99);
  EXPECT_THAT(
      runs,
      ElementsAre(ShardSpan{0, 2, ShardState::kCommitted}, ShardSpan{2, 3, ShardState::kLeased},
                  ShardSpan{3, 4, ShardState::kDone}, ShardSpan{4, 5, ShardState::kFailed},
                  ShardSpan{5, 7, ShardState::kLeased}, ShardSpan{7, 12, ShardState::kTodo}));
  EXPECT_THAT(queue.Runs(DatasetId(0), EpochIndex(0), 0, 2), ElementsAre(runs[0], runs[1]));
  EXPECT_THAT(queue.Runs(DatasetId(0), EpochIndex(0), 6, 1),
              ElementsAre(ShardSpan{6, 7, ShardState::kLeased}));
  EXPECT_THAT(queue.Runs(DatasetId(0), EpochIndex(0), 12, 9), ElementsAre());
}

TEST(ShardQueue, CommitsUpToACutAndReplaysAfterOne) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 4}});
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(queue.TakeNext().has_value());
  for (uint64_t i = 0; i < 4; ++i) queue.SetDone(Done(i + 1, Shard(0, 0, 3 - i)));
  EXPECT_THAT(queue.CommitUpTo(DoneSeq(1), 1000), ElementsAre(Done(1, Shard(0, 0, 3))));
  EXPECT_THAT(queue.ReplayAfter(DoneSeq(2)),
              ElementsAre(Done(3, Shard(0, 0, 1)), Done(4, Shard(0, 0, 0))));
  EXPECT_EQ(queue.StateOf(Shard(0, 0, 2)), ShardState::kDone);
  EXPECT_EQ(queue.FindDone(Shard(0, 0, 1)), std::nullopt);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_FALSE(queue.Finished());
}

TEST(ShardQueue, CommitsAFewAtATime) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 4}});
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(queue.TakeNext().has_value());
  for (uint64_t i = 0; i < 4; ++i) queue.SetDone(Done(i + 1, Shard(0, 0, 3 - i)));
  EXPECT_THAT(queue.CommitUpTo(DoneSeq(3), 2),
              ElementsAre(Done(1, Shard(0, 0, 3)), Done(2, Shard(0, 0, 2))));
  EXPECT_EQ(queue.StateOf(Shard(0, 0, 1)), ShardState::kDone);
  EXPECT_THAT(queue.CommitUpTo(DoneSeq(3), 2), ElementsAre(Done(3, Shard(0, 0, 1))));
  EXPECT_EQ(queue.committed_count(), 3u);
}

TEST(ShardQueue, RecoversHoles) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 10}});
  IntervalSet committed;
  committed.Add(0, 2);
  committed.Add(3, 4);
  queue.RestoreCommitted(DatasetId(0), EpochIndex(0), committed);
  queue.RestoreDone(Done(7, Shard(0, 0, 5)));
  queue.RestoreFailed(Shard(0, 0, 6));
  queue.FinishRestore();
  EXPECT_EQ(queue.StateOf(Shard(0, 0, 1)), ShardState::kCommitted);
  EXPECT_EQ(queue.StateOf(Shard(0, 0, 6)), ShardState::kFailed);
  queue.Take(Shard(0, 0, 8));  // a re-asserted lease, ahead of its turn
  std::vector<uint64_t> order;
  while (auto shard = queue.TakeNext()) order.push_back(shard->index.value());
  EXPECT_THAT(order, ElementsAre(2, 4, 7, 9));
  EXPECT_EQ(queue.Counts(DatasetId(0), EpochIndex(0)).leased, 5u);
}

TEST(ShardQueue, KnowsWhichIdsExist) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 3}});
  EXPECT_TRUE(queue.Valid(Shard(0, 1, 2)));
  EXPECT_FALSE(queue.Valid(Shard(1, 0, 0)));
  EXPECT_FALSE(queue.Valid(Shard(0, 2, 0)));
  EXPECT_FALSE(queue.Valid(Shard(0, 0, 3)));
}

TEST(ShardQueueDeathTest, RefusesAWrongTransition) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 3}});
  EXPECT_DEATH(queue.Return(Shard(0, 0, 0)), "0/0/0");
}

using Model = std::map<ShardId, ShardState>;

std::vector<ShardId> InState(const Model& model, ShardState state) {
  std::vector<ShardId> all;
  for (const auto& [shard, is] : model) {
    if (is == state) all.push_back(shard);
  }
  return all;
}

/// All that the queue says of one train dataset of three epochs is what the model says.
void ExpectAgrees(const ShardQueue& queue, const Model& model) {
  using enum ShardState;
  for (const auto& [shard, state] : model) ASSERT_EQ(queue.StateOf(shard), state);
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    std::map<ShardState, uint64_t> counts;
    uint64_t shards = 0;
    for (const auto& [shard, state] : model) {
      if (shard.epoch != EpochIndex(epoch)) continue;
      ++counts[state];
      ++shards;
    }
    const EpochCounts said = queue.Counts(DatasetId(0), EpochIndex(epoch));
    ASSERT_EQ(said.shards, shards);
    ASSERT_EQ(said.leased, counts[kLeased]);
    ASSERT_EQ(said.done, counts[kDone]);
    ASSERT_EQ(said.committed, counts[kCommitted]);
    ASSERT_EQ(said.failed, counts[kFailed]);
  }
  ASSERT_EQ(queue.shard_count(), model.size());
  ASSERT_EQ(queue.committed_count(), InState(model, kCommitted).size());
  ASSERT_EQ(queue.done().size(), InState(model, kDone).size());
  ASSERT_EQ(queue.failed_count(), InState(model, kFailed).size());
  ASSERT_EQ(queue.FailedShards(), InState(model, kFailed));
  ASSERT_EQ(queue.Finished(), queue.committed_count() + queue.failed_count() == model.size());
}

/// A queue that is restored from what a journal keeps of `queue`: leases are not of it.
void ExpectRestores(const ShardQueue& queue, Model model, uint64_t shards) {
  ShardQueue restored({{DatasetMode::kTrain, 3, shards}});
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    restored.RestoreCommitted(DatasetId(0), EpochIndex(epoch),
                              queue.Committed(DatasetId(0), EpochIndex(epoch)));
  }
  for (const DoneShard& done : queue.done()) restored.RestoreDone(done);
  for (const ShardId& shard : queue.FailedShards()) restored.RestoreFailed(shard);
  restored.FinishRestore();
  for (auto& [shard, state] : model) {
    if (state == ShardState::kLeased) state = ShardState::kTodo;
  }
  ExpectAgrees(restored, model);
  EXPECT_EQ(restored.done(), queue.done());
  for (const ShardId& shard : InState(model, ShardState::kTodo)) {
    ASSERT_THAT(restored.TakeNext(), Optional(shard));
  }
  ASSERT_EQ(restored.TakeNext(), std::nullopt);
}

/// Random transitions against a map that holds the state of every shard.
TEST(ShardQueue, AgreesWithAPlainModel) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const uint64_t shards = 1 + rng.Below(20);
    ShardQueue queue({{DatasetMode::kTrain, 3, shards}});
    Model model;
    for (uint32_t epoch = 0; epoch < 3; ++epoch) {
      for (uint64_t i = 0; i < shards; ++i) model[Shard(0, epoch, i)] = ShardState::kTodo;
    }
    uint64_t seq = 0;
    const auto pick = [&](ShardState state) -> std::optional<ShardId> {
      const std::vector<ShardId> all = InState(model, state);
      if (all.empty()) return std::nullopt;
      return all[rng.Below(all.size())];
    };
    for (int step = 0; step < 400; ++step) {
      if (step % 100 == 99) {
        ASSERT_NO_FATAL_FAILURE(ExpectAgrees(queue, model)) << "seed " << seed;
        ASSERT_NO_FATAL_FAILURE(ExpectRestores(queue, model, shards)) << "seed " << seed;
      }
      const uint64_t what = rng.Below(10);
      const auto leased = pick(ShardState::kLeased);
      if (what < 3) {
        std::optional<ShardId> expected;
        for (const auto& [shard, state] : model) {
          if (state == ShardState::kTodo && !expected.has_value()) expected = shard;
        }
        const auto taken = queue.TakeNext();
        ASSERT_EQ(taken, expected) << "seed " << seed;
        if (taken.has_value()) model[*taken] = ShardState::kLeased;
      } else if (what == 3 && leased.has_value()) {
        queue.Return(*leased);
        model[*leased] = ShardState::kTodo;
      } else if (what == 4 && leased.has_value()) {
        queue.SetDone(Done(++seq, *leased));
        model[*leased] = ShardState::kDone;
      } else if (what == 5) {
        const uint64_t cut = seq - rng.Below(std::min<uint64_t>(seq, 5) + 1);
        for (const DoneShard& done : queue.CommitUpTo(DoneSeq(cut), 1000)) {
          ASSERT_EQ(model[done.shard], ShardState::kDone);
          model[done.shard] = ShardState::kCommitted;
        }
      } else if (what == 6 && rng.Below(4) == 0) {
        for (const DoneShard& done : queue.ReplayAfter(DoneSeq(seq - std::min<uint64_t>(seq, 3)))) {
          ASSERT_EQ(model[done.shard], ShardState::kDone);
          model[done.shard] = ShardState::kTodo;
        }
      } else if (what == 7 && leased.has_value() && rng.Below(2) == 0) {
        queue.SetFailed(*leased);
        model[*leased] = ShardState::kFailed;
      } else if (const auto failed = pick(ShardState::kFailed); what == 8 && failed.has_value()) {
        queue.RetryFailed(*failed);
        model[*failed] = ShardState::kTodo;
      } else if (const auto todo = pick(ShardState::kTodo); what == 9 && todo.has_value()) {
        queue.Take(*todo);  // a re-asserted lease, ahead of its turn
        model[*todo] = ShardState::kLeased;
      }
    }
  }
}

TEST(ShardQueue, MemoryGrowsWithWhatIsInFlight) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 1'000'000'000}});
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto shard = queue.TakeNext();
    queue.SetDone(Done(i + 1, *shard));
  }
  queue.CommitUpTo(DoneSeq(1000), 1000);
  EXPECT_EQ(queue.Committed(DatasetId(0), EpochIndex(0)).intervals().size(), 1u);
  EXPECT_TRUE(queue.done().empty());
}

TEST(ShardQueue, AWholeEpochIsANumber) {
  ShardQueue queue({{.epochs = 9, .shards = 2}});
  for (uint64_t i = 0; i < 7; ++i) {
    queue.TakeNext();
    queue.SetDone(Done(i + 1, Shard(0, static_cast<uint32_t>(i / 2), i % 2)));
  }
  queue.CommitUpTo(DoneSeq(6), 9);
  EXPECT_EQ(queue.WholeEpochs(DatasetId(0)).count(), 3u) << "epoch 3 has a shard that is DONE";
  EXPECT_TRUE(queue.IsSettledUpTo(DatasetId(0), EpochIndex(2)));
  EXPECT_FALSE(queue.IsSettledUpTo(DatasetId(0), EpochIndex(3)));
  ShardQueue restored({{.epochs = 9, .shards = 2}});
  restored.RestoreWhole(DatasetId(0), queue.WholeEpochs(DatasetId(0)));
  restored.FinishRestore();
  for (const ShardQueue* one : {&queue, &restored}) {
    EXPECT_EQ(one->StateOf(Shard(0, 1, 1)), ShardState::kCommitted);
    EXPECT_EQ(one->Counts(DatasetId(0), EpochIndex(1)).committed, 2u);
    EXPECT_EQ(one->committed_count(), 6u);
  }
  EXPECT_THAT(restored.TakeNext(), Optional(Shard(0, 3, 0)));
}

}  // namespace
}  // namespace muster
