#include "worker_sdk/core/row_check.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "proto/wire/frame.h"
#include "worker_sdk/core/tensors.h"

namespace muster::sdk {
namespace {

class RowCheckTest : public ::testing::Test {
 protected:
  static constexpr size_t kDim = 4;
  RowCheckTest() : rows_(30 * kDim) { std::iota(rows_.begin(), rows_.end(), 0.5F); }

  std::span<const std::byte> values() const { return std::as_bytes(std::span(rows_)); }
  /// The checksum of `directory` and the rows as they are now.
  uint64_t Sum() const { return wire::ChecksumOf(directory_, {}, {Chars(), values().size()}); }
  const char* Chars() const { return reinterpret_cast<const char*>(rows_.data()); }
  RowCheck Check(uint64_t expected) {
    sum_.Reset();
    sum_.Add(std::as_bytes(std::span(directory_)));
    return {&sum_, expected, values()};
  }

  std::string directory_ = "before them";
  std::vector<float> rows_;
  wire::ChecksumStream sum_;
};

TEST_F(RowCheckTest, TheSumIsTheSameHoweverManyPiecesItIsTakenIn) {
  const uint64_t sum = Sum();
  EXPECT_TRUE(Check(sum).Finish());
  RowCheck check = Check(sum);
  for (const size_t row : {0, 1, 1, 17, 30}) check.UpTo(rows_.data() + row * kDim);
  EXPECT_TRUE(check.Finish());
}

TEST_F(RowCheckTest, ABitAnywhereIsFound) {
  const uint64_t sum = Sum();
  for (const size_t at : {size_t{0}, rows_.size() / 2, rows_.size() - 1}) {
    const float right = std::exchange(rows_[at], -rows_[at]);
    RowCheck check = Check(sum);
    check.UpTo(rows_.data() + 10 * kDim);
    EXPECT_FALSE(check.Finish()) << at;
    rows_[at] = right;
  }
  directory_[0] ^= 1;
  EXPECT_FALSE(Check(sum).Finish());
}

TEST_F(RowCheckTest, RowsAreCheckedWhileTheyAreCopiedAndThoseThatNobodyWantsToo) {
  std::vector<float> out(rows_.size());
  // Two parts of two rows, each in the other order.
  auto batch = std::make_shared<RowBatch>();
  batch->plan.ids = {1, 0, 3, 2};
  batch->plan.tables.push_back({.dim = kDim});
  batch->plan.groups = {{.dim = kDim, .keys = 2}, {.dim = kDim, .keys = 2}};
  batch->plan.parts = {{.key_count = 2, .group_count = 1},
                       {.key_begin = 2, .key_count = 2, .group_begin = 1, .group_count = 1}};
  batch->outputs.push_back({.rows = std::shared_ptr<float[]>(new float[out.size()])});
  // Rows 3 and 4, and rows 10 and 11; the others are not wanted.
  const RowMoves moves{.batch = batch,
                       .sparse = {{0, rows_.data() + 3 * kDim}, {1, rows_.data() + 10 * kDim}}};
  const uint64_t sum = Sum();
  RowCheck check = Check(sum);
  MoveRows(moves, &check);
  EXPECT_TRUE(check.Finish());
  std::copy_n(batch->outputs[0].rows.get(), out.size(), out.begin());
  for (size_t i = 0; i < kDim; ++i) {
    EXPECT_EQ(out[i], rows_[4 * kDim + i]);
    EXPECT_EQ(out[3 * kDim + i], rows_[10 * kDim + i]);
  }
  rows_[7 * kDim] = 0;
  RowCheck damaged = Check(sum);
  MoveRows(moves, &damaged);
  EXPECT_FALSE(damaged.Finish());
}

}  // namespace
}  // namespace muster::sdk
