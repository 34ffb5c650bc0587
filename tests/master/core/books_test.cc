#include "master/core/books.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kTrainSet;
using testing::PartsFixture;

class BooksTest : public ::testing::Test, protected PartsFixture {};

TEST_F(BooksTest, AnEpochIsCommittedWhenItsLastShardIs) {
  Start();
  for (int i = 0; i < 4; ++i) TrainOne();
  books().ledger.CommitUpTo(DoneSeq(3), 100);
  books().SayWhenCommitted(kTrainSet, EpochIndex(0), At());
  EXPECT_THAT(Events("epoch-committed"), IsEmpty());
  books().ledger.CommitUpTo(DoneSeq(4), 100);
  books().SayWhenCommitted(kTrainSet, EpochIndex(0), At());
  EXPECT_THAT(Events("epoch-committed"),
              ElementsAre(": epoch 1 of dataset 'train': 4 shards, 40 records"));
}

TEST_F(BooksTest, AStreamIsNoWholeEpochBeforeItsEnd) {
  options.datasets[0].shards = options.datasets[0].records = 0;
  options.datasets[0].stream = StreamPlan{.topic = "clicks"};
  Start();
  books().SayWhenCommitted(kTrainSet, EpochIndex(0), At());
  EXPECT_THAT(Events("epoch-committed"), IsEmpty()) << "all of no shards, but more will come";
}

TEST_F(BooksTest, WhatTheJournalCountedGoesOn) {
  state.meta.emplace().totals.replayed_shards = 5;
  Start();
  EXPECT_EQ(books().totals.replayed_shards, 5u);
}

}  // namespace
}  // namespace muster
