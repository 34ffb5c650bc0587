#include "master/core/kept_epochs.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Manifest ManifestWith(const std::vector<std::string>& names) {
  Manifest manifest;
  for (const std::string& name : names) manifest.files.push_back({.name = name, .bytes = 1});
  return manifest;
}

/// A table of one partition, whose snapshot has these files.
PartitionTable TableWith(const std::vector<std::string>& names) {
  DurableState state;
  state.partitions[PartitionId(0)] = {PartitionId(0), {}, ManifestWith(names)};
  return PartitionTable(1, MasterIncarnation(1), state, {});
}

TEST(KeptEpochsTest, AFileIsUnusedWhenNeitherTheSnapshotNorAnotherEpochHasIt) {
  KeptEpochs kept({}, 1);
  kept.Keep(EpochIndex(0), TableWith({"a", "b"}));
  kept.Keep(EpochIndex(1), TableWith({"a", "c"}));
  EXPECT_TRUE(kept.Names("b"));
  std::vector<std::string> unused;
  kept.Drop(EpochIndex(0), TableWith({"d"}), &unused);
  EXPECT_THAT(unused, ElementsAre("b"));
  EXPECT_FALSE(kept.Names("b"));
  EXPECT_TRUE(kept.Names("a"));
  unused.clear();
  kept.Drop(EpochIndex(1), TableWith({"c", "d"}), &unused);
  EXPECT_THAT(unused, ElementsAre("a"));
  EXPECT_THAT(kept.epochs(), IsEmpty());
}

TEST(KeptEpochsTest, TheJournalBringsItBack) {
  KeptEpochs kept({}, 1);
  kept.Keep(EpochIndex(0), TableWith({"a"}));
  kept.Keep(EpochIndex(3), TableWith({"b"}));
  std::vector<std::string> unused;
  kept.Drop(EpochIndex(0), TableWith({"b"}), &unused);
  std::vector<Mutation> mutations;
  kept.Collect(&mutations);
  DurableState state;
  for (const Mutation& mutation : mutations) Apply(mutation, &state);
  const KeptEpochs again(state.kept, 1);
  EXPECT_EQ(again.epochs(), kept.epochs());
  EXPECT_TRUE(again.Names("b"));
  EXPECT_FALSE(again.Names("a"));
  mutations.clear();
  kept.Collect(&mutations);
  EXPECT_THAT(mutations, IsEmpty());
}

}  // namespace
}  // namespace muster
