#include "worker_sdk/core/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr TableId kTable{4};
constexpr PartitionId kFirst{1}, kSecond{3};
constexpr OwnerEpoch kEpoch{7};

/// Six blocks of two floats in two partitions.
class TensorsTest : public ::testing::Test {
 protected:
  const std::vector<uint64_t> first_ = {0, 2, 5}, second_ = {1, 3, 4};

  static std::vector<float> RowsOf(float value) { return std::vector<float>(6, value); }
  static PulledTensor Begin(std::shared_ptr<const Tensor> base) {
    return {kTable, 2, 12, std::move(base)};
  }
  void Place(PulledTensor* pulled, PartitionId partition, uint64_t version, float value) {
    const std::vector<float> rows = RowsOf(value);
    PooledVector<RowMove> moves;
    pulled->Place(partition, {kEpoch, version}, partition == kFirst ? first_ : second_, rows.data(),
                  &moves);
    MoveRows(moves);
  }
  void Keep(PulledTensor* pulled, PartitionId partition) {
    PooledVector<RowMove> moves;
    pulled->Keep(partition, partition == kFirst ? first_ : second_, &moves);
    MoveRows(moves);
  }
  /// A tensor of versions 5 and 6, with ones and twos.
  std::shared_ptr<const Tensor> Whole() {
    PulledTensor pulled = Begin(nullptr);
    Place(&pulled, kFirst, 5, 1);
    Place(&pulled, kSecond, 6, 2);
    return pulled.Take();
  }
  /// The first float of every block.
  static std::vector<float> Blocks(const Tensor& tensor) {
    std::vector<float> blocks;
    for (size_t block = 0; block < 6; ++block) {
      EXPECT_EQ(tensor.values[2 * block], tensor.values[2 * block + 1]);
      blocks.push_back(tensor.values[2 * block]);
    }
    return blocks;
  }
};

TEST_F(TensorsTest, RowsGoToTheirBlocks) {
  EXPECT_THAT(Blocks(*Whole()), ElementsAre(1, 2, 1, 2, 2, 1));
}

TEST_F(TensorsTest, AVersionIsHeldUnderItsOwnerEpochOnly) {
  const PulledTensor pulled = Begin(Whole());
  EXPECT_EQ(pulled.Holds(kFirst, kEpoch), 5u);
  EXPECT_EQ(pulled.Holds(kSecond, kEpoch), 6u);
  EXPECT_EQ(pulled.Holds(kFirst, OwnerEpoch(8)), wire::kNoVersion);
  EXPECT_EQ(pulled.Holds(PartitionId(2), kEpoch), wire::kNoVersion);
  EXPECT_EQ(pulled.Holds(PartitionId(99), kEpoch), wire::kNoVersion);
  EXPECT_EQ(Begin(nullptr).Holds(kFirst, kEpoch), wire::kNoVersion);
}

TEST_F(TensorsTest, WhatIsUnchangedAsAWholeIsTheSameMemory) {
  const std::shared_ptr<const Tensor> base = Whole();
  PulledTensor pulled = Begin(base);
  Keep(&pulled, kSecond);
  Keep(&pulled, kFirst);
  EXPECT_EQ(pulled.Take(), base);
}

TEST_F(TensorsTest, WhatIsUnchangedInPartIsTakenFromTheBaseWhicheverCameFirst) {
  for (const bool kept_first : {true, false}) {
    const std::shared_ptr<const Tensor> base = Whole();
    PulledTensor pulled = Begin(base);
    if (kept_first) Keep(&pulled, kSecond);
    Place(&pulled, kFirst, 8, 3);
    if (!kept_first) Keep(&pulled, kSecond);
    const std::shared_ptr<const Tensor> after = pulled.Take();
    EXPECT_THAT(Blocks(*after), ElementsAre(3, 2, 3, 2, 2, 3));
    EXPECT_THAT(Blocks(*base), ElementsAre(1, 2, 1, 2, 2, 1)) << "a minibatch may read it";
    const PulledTensor next = Begin(after);
    EXPECT_EQ(next.Holds(kFirst, kEpoch), 8u);
    EXPECT_EQ(next.Holds(kSecond, kEpoch), 6u);
  }
}

TEST_F(TensorsTest, RowsWithoutAVersionAreNotHeld) {
  PulledTensor pulled = Begin(Whole());
  Place(&pulled, kFirst, wire::kNoVersion, 3);
  Keep(&pulled, kSecond);
  const PulledTensor next = Begin(pulled.Take());
  EXPECT_EQ(next.Holds(kFirst, kEpoch), wire::kNoVersion);
  EXPECT_EQ(next.Holds(kSecond, kEpoch), 6u);
}

TEST_F(TensorsTest, ANewerTensorFreesTheBaseUnlessItsRowsAreKept) {
  PulledTensor newer = Begin(nullptr);
  Place(&newer, kFirst, 8, 3);
  Place(&newer, kSecond, 9, 4);
  const std::shared_ptr<const Tensor> newest = newer.Take();
  for (const bool kept : {true, false}) {
    std::shared_ptr<const Tensor> base = Whole();
    const std::weak_ptr<const Tensor> watched = base;
    PulledTensor pulled = Begin(std::move(base));
    if (kept) Keep(&pulled, kSecond);
    pulled.Rebase(newest);
    EXPECT_EQ(watched.expired(), !kept);
    EXPECT_EQ(pulled.Holds(kFirst, kEpoch), kept ? 5u : 8u);
    Place(&pulled, kFirst, 10, 5);
    if (!kept) Keep(&pulled, kSecond);
    const float rows = kept ? 2 : 4;
    EXPECT_THAT(Blocks(*pulled.Take()), ElementsAre(5, rows, 5, rows, rows, 5));
  }
}

TEST_F(TensorsTest, MovesKeepWhatTheyTouch) {
  PooledVector<RowMove> moves;
  const std::vector<float> rows = RowsOf(3);
  {
    PulledTensor pulled = Begin(Whole());
    pulled.Place(kFirst, {kEpoch, 8}, first_, rows.data(), &moves);
    pulled.Keep(kSecond, second_, &moves);
    ASSERT_THAT(moves, SizeIs(2));
  }  // the pull was given up
  MoveRows(moves);
  EXPECT_EQ(moves[0].to[0], 3);
  EXPECT_EQ(moves[0].to[2], 2);
}

TEST_F(TensorsTest, SparseRowsOfAPartGoToTheOutputsOfTheirTables) {
  const auto keys = std::make_shared<KeySet>();
  keys->first = {1, 2, 3};
  auto batch = std::make_shared<RowBatch>();
  const auto output = [] { return std::shared_ptr<float[]>(new float[8]()); };
  batch->outputs = {{.keys = keys, .spread = false, .rows = output()},
                    {.keys = keys, .spread = true, .rows = output()}};
  batch->plan.tables.resize(2);
  batch->plan.ids = {9, 2, 0, 1, 0, 2};  // the first one is of another part
  batch->plan.groups = {{.dim = 1, .keys = 1},
                        {.dim = 2, .keys = 2, .number = 0},
                        {.dim = 2, .keys = 3, .number = 1}};
  batch->plan.parts = {{.key_count = 1, .group_count = 1},
                       {.key_begin = 1, .key_count = 5, .group_begin = 1, .group_count = 2}};
  const std::vector<float> from = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  MoveRows(RowMoves{.batch = batch, .sparse = {{1, from.data()}}});
  const auto rows = [&](size_t table) {
    const float* const of = batch->outputs[table].rows.get();
    return std::vector<float>(of, of + 8);
  };
  EXPECT_THAT(rows(0), ElementsAre(3, 4, 0, 0, 1, 2, 0, 0));
  EXPECT_THAT(rows(1), ElementsAre(0, 0, 7, 8, 5, 6, 9, 10));
}

}  // namespace
}  // namespace muster::sdk
