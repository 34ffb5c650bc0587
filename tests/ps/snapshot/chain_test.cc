#include "ps/snapshot/chain.h"

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::testing::ElementsAre;

Manifest Chain(std::vector<uint64_t> bytes) {
  Manifest manifest;
  for (const uint64_t size : bytes) manifest.files.push_back({"file", size});
  return manifest;
}

TEST(ChainTest, ABaseIsWrittenWhenItIsDue) {
  EXPECT_EQ(NextSnapshotKind(Chain({})), SnapshotKind::kBase);
  EXPECT_EQ(NextSnapshotKind(Chain({100})), SnapshotKind::kDelta);
  EXPECT_EQ(NextSnapshotKind(Chain({100, 60, 40})), SnapshotKind::kDelta);
  EXPECT_EQ(NextSnapshotKind(Chain({100, 60, 41})), SnapshotKind::kBase);
  EXPECT_EQ(NextSnapshotKind(Chain({100, 1, 1, 1, 1, 1, 1})), SnapshotKind::kDelta);
  EXPECT_EQ(NextSnapshotKind(Chain({100, 1, 1, 1, 1, 1, 1, 1})), SnapshotKind::kBase);
}

TEST(ChainTest, ADeltaExtendsTheAcceptedChainAndABaseReplacesIt) {
  const SnapshotNumber number(MasterIncarnation(2), 9);
  const SnapshotFile file{"new", 5};
  const Manifest delta =
      ExtendChain(Chain({100, 60}), SnapshotKind::kDelta, number, DoneSeq(77), file);
  EXPECT_EQ(delta.number, number);
  EXPECT_EQ(delta.cut, DoneSeq(77));
  const SnapshotFile numbered{"new", 5, number};
  EXPECT_THAT(delta.files,
              ElementsAre(SnapshotFile{"file", 100}, SnapshotFile{"file", 60}, numbered));
  EXPECT_THAT(ExtendChain(Chain({100, 60}), SnapshotKind::kBase, number, DoneSeq(77), file).files,
              ElementsAre(numbered));
}

}  // namespace
}  // namespace muster::ps
