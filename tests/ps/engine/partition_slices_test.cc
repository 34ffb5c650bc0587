// Parts, pulls and images that take several calls.
#include <limits>

#include "ps/engine/row_gather.h"
#include "tests/ps/engine/partition_fixture.h"

namespace muster::ps {
namespace partition_test {

TEST_F(PartitionTest, APartInSlicesChangesNothingUntilAllOfItIsChecked) {
  const std::vector<uint64_t> keys{5, 6, 7, 8, 9}, blocks{0, 1, 2};
  const std::vector<float> ones(10, 1), twos(6, 2);
  std::vector<float> bad = twos;
  bad.back() = std::numeric_limits<float>::infinity();
  const auto part = [&](std::span<const float> last) {
    return Part{
        Shard(1), MinibatchIndex(0), Token(1), 0, {{kSparse, keys, ones}, {kDense, blocks, last}}};
  };
  const auto slice = [&](const Part& part, PartProgress* progress) {
    WorkLimit work(1);  // one row
    return partition_.Apply(part, progress, &work);
  };
  PartProgress refused, progress;
  std::optional<ApplyResult> result;
  for (int slices = 0; !(result = slice(part(bad), &refused)); ++slices) ASSERT_LT(slices, 8);
  EXPECT_EQ(result->code, ApplyCode::kBadRequest);
  EXPECT_THAT(result->text, HasSubstr("table 'bias': the gradient of key 2 has inf in column 1"));
  int checking = 0, applying = 0;
  for (; !partition_.holds_half(); ++checking) {
    EXPECT_FALSE(partition_.InWindow(Shard(1), MinibatchIndex(0)));
    EXPECT_EQ(partition_.sizes().rows, 0u);
    ASSERT_EQ(slice(part(twos), &progress), std::nullopt);
  }
  for (; !(result = slice(part(twos), &progress)); ++applying) {
    EXPECT_TRUE(partition_.holds_half());
    EXPECT_TRUE(partition_.InWindow(Shard(1), MinibatchIndex(0)));
  }
  EXPECT_EQ(result->code, ApplyCode::kApplied);
  EXPECT_FALSE(partition_.holds_half());
  EXPECT_EQ(checking, 8) << "a row in each";
  EXPECT_EQ(applying, 7) << "and again, the last one included";
  for (const uint64_t key : keys) EXPECT_THAT(Pull(key), ElementsAre(1, 1));
  for (const uint64_t block : {0u, 1u}) EXPECT_THAT(Pull(block, kDense), ElementsAre(9, 9));
  EXPECT_EQ(partition_.sizes().rows, 8u);
}

TEST_F(PartitionTest, AGatherInSlicesGoesOnFromWhereItWas) {
  Push(1, 0, Token(1), {5, 7}, {1, 2, 3, 4});
  const std::vector<uint64_t> keys{5, 6, 7};
  for (const uint64_t limit : {1u, 300u, 100'000u}) {
    std::vector<float> values(6, -1);
    const PullGroup group{.table = partition_.FindTable(kSparse), .keys = keys, .values = values};
    for (size_t done = 0; done < keys.size();) {
      WorkLimit work(limit);
      const Gathered gathered = Gather({&group, 1}, done, &work);
      ASSERT_THAT(gathered.status, IsOk());
      const size_t now = gathered.group == 1 ? keys.size() : gathered.row;
      ASSERT_GT(now, done);
      EXPECT_TRUE(limit > 1 || now == done + 1);
      done = now;
    }
    EXPECT_THAT(values, ElementsAre(1, 2, 0, 0, 3, 4));
  }
}

TEST_F(PartitionTest, AGatherDoesTheGroupsBeforeOneThatIsWrong) {
  Push(1, 0, Token(1), {5, 7}, {1, 2, 3, 4});
  const std::vector<uint64_t> keys{5, 7}, beyond{1, 5};
  std::vector<float> before(4), values(4);
  const auto gather = [&](TableId table, std::span<const uint64_t> wrong, size_t floats) {
    std::ranges::fill(before, -1.0f);
    const PullGroup groups[] = {
        {.table = partition_.FindTable(kSparse), .keys = keys, .values = before},
        {.table = partition_.FindTable(table),
         .keys = wrong,
         .values = std::span(values).first(floats)}};
    WorkLimit work(100'000);
    const Gathered gathered = Gather(groups, 0, &work);
    EXPECT_EQ(gathered.group, 1u);
    EXPECT_EQ(gathered.row, 0u);
    EXPECT_THAT(before, ElementsAre(1, 2, 3, 4));
    return gathered.status;
  };
  EXPECT_THAT(gather(TableId(8), keys, 4),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("not known")));
  EXPECT_THAT(gather(kSparse, keys, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rows of 2 floats")));
  EXPECT_THAT(gather(kDense, beyond, 4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("block 5")));
}

TEST_F(PartitionTest, AnImageThatIsDroppedIsNeverAccepted) {
  Push(1, 0, Token(1), {5}, {1, 1});
  partition_.BeginImage(Number(1), SnapshotKind::kBase);
  WorkLimit little(1);
  partition_.CopyImage(&little);
  partition_.DropImage();
  partition_.Accepted(Number(1));
  EXPECT_FALSE(partition_.UnchangedSinceAccepted());
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(2), SnapshotKind::kDelta)), ElementsAre(5));
  partition_.DropImage();  // none is being copied
  partition_.Accepted(Number(2));
  EXPECT_TRUE(partition_.UnchangedSinceAccepted());
}

TEST_F(PartitionTest, AnImageIsAcceptedWhenItIsWhole) {
  Push(1, 0, Token(1), {5}, {1, 1});
  partition_.BeginImage(Number(1), SnapshotKind::kBase);
  partition_.Accepted(Number(1));
  EXPECT_EQ(partition_.sizes().dirty_rows, 1u);
  for (WorkLimit work = WorkLimit::None(); !partition_.CopyImage(&work);) {
  }
  EXPECT_THAT(KeysOf(partition_.TakeImage()), ElementsAre(5));
  partition_.Accepted(Number(1));
  EXPECT_EQ(partition_.sizes().dirty_rows, 0u);
}

}  // namespace partition_test
}  // namespace muster::ps
