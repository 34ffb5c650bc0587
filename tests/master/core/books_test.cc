#include "master/core/books.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::PartsFixture;

class BooksTest : public ::testing::Test, protected PartsFixture {};

TEST_F(BooksTest, WhoOnlyReadsAddsEvents) {
  Start();
  const Books& read_only = books();
  read_only.Say(At(), "node-lost", "worker-0", "silent");
  EXPECT_THAT(Events("node-lost"), ElementsAre("worker-0: silent"));
  std::vector<Mutation> mutations;
  books().CollectEvents(&mutations);
  EXPECT_EQ(mutations.size(), 1u);
}

TEST_F(BooksTest, WhatTheJournalCountedGoesOn) {
  state.meta.emplace().totals.replayed_shards = 5;
  Start();
  EXPECT_EQ(books().totals.replayed_shards, 5u);
}

}  // namespace
}  // namespace muster
