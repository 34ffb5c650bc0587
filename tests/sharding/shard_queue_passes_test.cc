// The order of evaluations and predictions.
#include "sharding/shard_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sharding/queue_shards.h"

namespace muster {
namespace {

using testing::Done;
using ::testing::ElementsAre;
using ::testing::Optional;
using testing::Shard;
using ::testing::SizeIs;

TEST(ShardQueuePasses, EvaluatePassWaitsForItsEpochAndGoesFirst) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 1}, {DatasetMode::kEvaluate, 0, 1}},
                   Evaluation::kOverlapping);
  EXPECT_EQ(queue.epochs(DatasetId(1)), 2u);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_THAT(queue.Peek(), Optional(Shard(0, 1, 0))) << "leased is not DONE";
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 0)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  queue.SetDone(Done(2, Shard(1, 0, 0)));
  EXPECT_EQ(queue.StateOf(Shard(1, 0, 0)), ShardState::kDone);
  ASSERT_THAT(queue.ReplayAfter(DoneSeq(0)), SizeIs(2));
  EXPECT_EQ(queue.StateOf(Shard(1, 0, 0)), ShardState::kTodo) << "it runs again with its training";
}

TEST(ShardQueuePasses, PredictionsComeAfterAllTraining) {
  ShardQueue queue(
      {{DatasetMode::kPredict, 7, 2}, {DatasetMode::kTrain, 2, 1}, {DatasetMode::kEvaluate, 0, 1}});
  EXPECT_EQ(queue.epochs(DatasetId(0)), 1u);
  EXPECT_EQ(queue.shard_count(), 6u);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.SetDone(Done(1, Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(2, 0, 0)));
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.SetDone(Done(2, Shard(2, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 1, 0)));
  EXPECT_EQ(queue.Peek(), std::nullopt) << "leased is not DONE";
  queue.SetDone(Done(3, Shard(1, 1, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(2, 1, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0))) << "the weights do not change any more";
  EXPECT_EQ(queue.TrainingEpochOf(Shard(0, 0, 0)), EpochIndex(1));
  EXPECT_EQ(queue.TrainingEpochOf(Shard(2, 0, 0)), EpochIndex(0));
  queue.Return(Shard(0, 0, 0));
  queue.Return(Shard(2, 1, 0));
  ASSERT_THAT(queue.ReplayAfter(DoneSeq(2)), SizeIs(1));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 1, 0))) << "training that a restore undid";
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.SetDone(Done(4, Shard(1, 1, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(2, 1, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
  EXPECT_EQ(queue.LeftBeforeWait(), 0u);
}

TEST(ShardQueuePasses, AJobMayOnlyPredict) {
  ShardQueue queue({{DatasetMode::kPredict, 1, 2}});
  EXPECT_EQ(queue.LeftBeforeWait(), 2u);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  queue.SetDone(Done(2, Shard(0, 0, 1)));
  queue.CommitUpTo(DoneSeq(2), 2);
  EXPECT_TRUE(queue.Finished());
}

TEST(ShardQueuePasses, NothingIsPredictedWhileATopicIsOpen) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 0, /*open=*/true}, {DatasetMode::kPredict, 1, 1}});
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.Close(DatasetId(0));
  EXPECT_THAT(queue.Peek(), Optional(Shard(1, 0, 0)));
}

TEST(ShardQueuePasses, TheNextEpochWaitsForTheEvaluationOfTheOneBefore) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 1}, {DatasetMode::kEvaluate, 0, 2}});
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_EQ(queue.Peek(), std::nullopt) << "the evaluation would see the next epoch";
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 1)));
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.SetDone(Done(2, Shard(1, 0, 1)));
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.Return(Shard(1, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  queue.SetFailed(Shard(1, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 0))) << "a failed one is not waited for";
}

TEST(ShardQueuePasses, AnEvaluateShardThatComesBackGoesFirstAgain) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 2}, {DatasetMode::kEvaluate, 0, 1}},
                   Evaluation::kOverlapping);
  for (uint64_t i = 0; i < 2; ++i) {
    queue.Take(Shard(0, 0, i));
    queue.SetDone(Done(i + 1, Shard(0, 0, i)));
  }
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 0)));
  queue.Return(Shard(1, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 1))) << "training continues where it was";
}

TEST(ShardQueuePasses, ADatasetThatIsNotTrainedHoldsUpNoEvaluation) {
  ShardQueue queue({{DatasetMode::kTrain, 0, 5}, {DatasetMode::kEvaluate, 0, 1}});
  EXPECT_EQ(queue.shard_count(), 1u);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
}

TEST(ShardQueuePasses, EvaluatePassOfAShorterTrainDatasetUsesItsLastEpoch) {
  ShardQueue queue(
      {{DatasetMode::kTrain, 1, 1}, {DatasetMode::kTrain, 2, 1}, {DatasetMode::kEvaluate, 0, 1}},
      Evaluation::kOverlapping);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.TakeNext().has_value());
  queue.SetDone(Done(1, Shard(1, 0, 0)));
  queue.SetDone(Done(2, Shard(1, 1, 0)));
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.SetDone(Done(3, Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(2, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(2, 1, 0)));
}

TEST(ShardQueuePasses, DoneCommittedAndFailedShardsAreTrainedAlike) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 3}, {DatasetMode::kEvaluate, 0, 1}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.TakeNext().has_value());
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  queue.CommitUpTo(DoneSeq(1), 1000);
  queue.SetDone(Done(2, Shard(0, 0, 1)));
  EXPECT_EQ(queue.Peek(), std::nullopt);
  queue.SetFailed(Shard(0, 0, 2));
  EXPECT_THAT(queue.Peek(), Optional(Shard(1, 0, 0)));
}

TEST(ShardQueuePasses, EvaluatePassWaitsForTheReplayOfAnEarlierEpoch) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 1}, {DatasetMode::kEvaluate, 0, 1}});
  queue.Take(Shard(0, 0, 0));
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  queue.SetDone(Done(2, Shard(1, 0, 0)));
  queue.Take(Shard(0, 1, 0));
  ASSERT_THAT(queue.ReplayAfter(DoneSeq(0)), SizeIs(2));
  queue.SetDone(Done(3, Shard(0, 1, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0))) << "neither pass";
  queue.SetDone(Done(4, Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 1, 0)));
}

TEST(ShardQueuePasses, AnOpenDatasetGrowsAndEndsOnlyWhenItIsClosed) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 0, /*open=*/true}, {DatasetMode::kEvaluate, 0, 1}});
  EXPECT_EQ(queue.Peek(), std::nullopt) << "an evaluation waits for the stream's end";
  EXPECT_FALSE(queue.Valid(Shard(0, 0, 0)));
  queue.AddShards(DatasetId(0), 2);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 1)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  queue.AddShards(DatasetId(0), 1);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 2)));
  for (uint64_t i = 0; i < 3; ++i) queue.SetDone(Done(i + 1, Shard(0, 0, i)));
  queue.CommitUpTo(DoneSeq(3), 1000);
  EXPECT_EQ(queue.Peek(), std::nullopt);
  EXPECT_FALSE(queue.Finished());
  EXPECT_TRUE(queue.AnyOpen());
  queue.Close(DatasetId(0));
  EXPECT_FALSE(queue.AnyOpen());
  queue.Close(DatasetId(0));
  EXPECT_FALSE(queue.AnyOpen());
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  queue.SetDone(Done(4, Shard(1, 0, 0)));
  queue.CommitUpTo(DoneSeq(4), 1000);
  EXPECT_TRUE(queue.Finished());
}

TEST(ShardQueuePasses, EvaluatesOnceWhenNothingIsTrained) {
  ShardQueue queue({{DatasetMode::kEvaluate, 0, 1}});
  EXPECT_EQ(queue.epochs(DatasetId(0)), 1u);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  queue.CommitUpTo(DoneSeq(1), 1000);
  EXPECT_TRUE(queue.Finished());
}

TEST(ShardQueuePasses, FailedShardsDoNotHoldBackEvaluation) {
  ShardQueue queue({{DatasetMode::kTrain, 1, 1}, {DatasetMode::kEvaluate, 0, 1}});
  ASSERT_TRUE(queue.TakeNext().has_value());
  queue.SetFailed(Shard(0, 0, 0));
  EXPECT_THAT(queue.FailedShards(), ElementsAre(Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  queue.RetryFailed(Shard(0, 0, 0));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
}

TEST(ShardQueuePasses, AnEpochThatIsNotOpenWaits) {
  ShardQueue queue({{DatasetMode::kTrain, 3, 1}, {DatasetMode::kEvaluate, 0, 1}});
  queue.OpenEpochs(1);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 0, 0)));
  EXPECT_EQ(queue.Peek(), std::nullopt) << "epoch 1 would be next without a barrier";
  queue.SetDone(Done(1, Shard(0, 0, 0)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0))) << "it judges the epoch that is open";
  queue.SetDone(Done(2, Shard(1, 0, 0)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  queue.OpenEpochs(2);
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(0, 1, 0)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
}

TEST(ShardQueuePasses, EndAfterTakesEpochsAway) {
  ShardQueue queue({{DatasetMode::kTrain, 3, 2}, {DatasetMode::kEvaluate, 0, 1}});
  EXPECT_EQ(queue.shard_count(), 9u);
  queue.EndAfter(4);
  EXPECT_EQ(queue.shard_count(), 9u) << "it has no such epochs";
  for (uint64_t i = 0; i < 2; ++i) {
    queue.Take(Shard(0, 0, i));
    queue.SetDone(Done(i + 1, Shard(0, 0, i)));
  }
  queue.EndAfter(1);
  EXPECT_EQ(queue.shard_count(), 3u);
  EXPECT_EQ(queue.epochs_max(), 1u);
  EXPECT_FALSE(queue.ValidEpoch(DatasetId(0), EpochIndex(1)));
  EXPECT_FALSE(queue.ValidEpoch(DatasetId(1), EpochIndex(1)));
  EXPECT_THAT(queue.TakeNext(), Optional(Shard(1, 0, 0)));
  queue.SetDone(Done(3, Shard(1, 0, 0)));
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  EXPECT_THAT(queue.CommitUpTo(DoneSeq(3), 3), SizeIs(3));
  EXPECT_TRUE(queue.Finished());
}

TEST(ShardQueueDeathTest, AnEpochThatHasBegunIsNotTakenAway) {
  ShardQueue queue({{DatasetMode::kTrain, 2, 1}});
  queue.Take(Shard(0, 1, 0));
  EXPECT_DEATH(queue.EndAfter(1), "");
  EXPECT_DEATH(queue.EndAfter(0), "");
}

}  // namespace
}  // namespace muster
