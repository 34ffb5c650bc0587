#include "ps/engine/window.h"

#include <memory>

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ShardId Shard(uint32_t dataset, uint32_t epoch, uint64_t index) {
  return {DatasetId(dataset), EpochIndex(epoch), ShardIndex(index)};
}

TEST(WindowTest, KnowsExactlyWhatWasAdded) {
  Window window;
  for (const uint32_t minibatch : {0u, 63u, 64u, 200u}) {
    window.Add(Shard(1, 2, 3), MinibatchIndex(minibatch));
  }
  for (uint32_t minibatch = 0; minibatch < 300; ++minibatch) {
    EXPECT_EQ(window.Contains(Shard(1, 2, 3), MinibatchIndex(minibatch)),
              minibatch == 0 || minibatch == 63 || minibatch == 64 || minibatch == 200)
        << minibatch;
  }
  EXPECT_FALSE(window.Contains(Shard(1, 2, 4), MinibatchIndex(0)));
  EXPECT_FALSE(window.Contains(Shard(1, 3, 3), MinibatchIndex(0)));
  EXPECT_FALSE(window.Contains(Shard(0, 2, 3), MinibatchIndex(0)));
}

TEST(WindowTest, WhatWasUsedLastIsFoundAfterEveryChangeAndInCopies) {
  auto window = std::make_unique<Window>();
  const auto has = [](const Window& of, uint64_t shard, uint32_t minibatch) {
    return of.Contains(Shard(0, 0, shard), MinibatchIndex(minibatch));
  };
  window->Add(Shard(0, 0, 0), MinibatchIndex(5));
  for (uint64_t shard = 1; shard < 100; ++shard) {
    EXPECT_TRUE(has(*window, 0, 5));
    window->Add(Shard(0, 0, shard), MinibatchIndex(5));  // the entries may move
  }
  EXPECT_TRUE(has(*window, 0, 5));
  window->Set({Shard(0, 0, 100), {1}});
  EXPECT_TRUE(has(*window, 100, 0));
  ForgetState state;
  state.shards[{DatasetId(0), EpochIndex(0)}].Add(100, 101);
  window->Forget(state);
  EXPECT_FALSE(has(*window, 100, 0));
  EXPECT_TRUE(has(*window, 0, 5));
  Window copy = *window;
  Window assigned;
  assigned.Add(Shard(0, 0, 0), MinibatchIndex(6));
  assigned = *window;
  window->Add(Shard(0, 0, 0), MinibatchIndex(7));
  window.reset();
  for (Window* of : {&copy, &assigned}) {
    EXPECT_TRUE(has(*of, 0, 5));
    EXPECT_FALSE(has(*of, 0, 6) || has(*of, 0, 7));
    of->Add(Shard(0, 0, 0), MinibatchIndex(7));
    EXPECT_TRUE(has(*of, 0, 7));
  }
}

TEST(WindowTest, EntriesAreSortedAndSetTakesThemBack) {
  Window window;
  window.Add(Shard(1, 0, 0), MinibatchIndex(1));
  window.Add(Shard(0, 1, 9), MinibatchIndex(64));
  window.Add(Shard(0, 1, 2), MinibatchIndex(0));
  const std::vector<WindowEntry> entries = window.Entries();
  EXPECT_THAT(entries,
              ElementsAre(WindowEntry{Shard(0, 1, 2), {1}}, WindowEntry{Shard(0, 1, 9), {0, 1}},
                          WindowEntry{Shard(1, 0, 0), {2}}));
  Window copy;
  for (const WindowEntry& entry : entries) copy.Set(entry);
  EXPECT_EQ(copy.Entries(), entries);
}

TEST(WindowTest, ForgetsByDatasetEpochAndIndex) {
  Window window;
  window.Add(Shard(0, 0, 5), MinibatchIndex(0));
  window.Add(Shard(0, 1, 5), MinibatchIndex(0));
  window.Add(Shard(1, 0, 5), MinibatchIndex(0));
  window.Add(Shard(0, 0, 6), MinibatchIndex(0));
  ForgetState state;
  state.shards[{DatasetId(0), EpochIndex(0)}].Add(0, 6);
  window.Forget(state);
  EXPECT_EQ(window.shards(), 3u);
  EXPECT_FALSE(window.Contains(Shard(0, 0, 5), MinibatchIndex(0)));
  state.shards.clear();
  state.shards[{DatasetId(0), EpochIndex(0)}].Add(0, 100);
  state.shards[{DatasetId(0), EpochIndex(1)}].Add(0, 100);
  state.shards[{DatasetId(1), EpochIndex(0)}].Add(0, 100);
  window.Forget(state);
  EXPECT_THAT(window.Entries(), IsEmpty());
}

TEST(WindowTest, AllShardsOfAWholeEpochAreForgotten) {
  Window window;
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    for (uint64_t index = 0; index < 2; ++index) {
      window.Add({DatasetId(0), EpochIndex(epoch), ShardIndex(index)}, MinibatchIndex(0));
    }
  }
  window.Add({DatasetId(1), EpochIndex(0), ShardIndex(0)}, MinibatchIndex(0));
  ForgetState state;
  state.epochs[DatasetId(0)].Add(0, 2);
  state.shards[{DatasetId(0), EpochIndex(2)}].Add(1);
  window.Forget(state);
  EXPECT_EQ(window.shards(), 2u);
  EXPECT_TRUE(window.Contains({DatasetId(0), EpochIndex(2), ShardIndex(0)}, MinibatchIndex(0)));
  EXPECT_TRUE(window.Contains({DatasetId(1), EpochIndex(0), ShardIndex(0)}, MinibatchIndex(0)));
}

}  // namespace
}  // namespace muster::ps
