#include "ps/engine/row_index.h"

#include <algorithm>
#include <map>

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

TEST(RowIndexTest, FindsWhatWasInsertedWhateverTheKeysAre) {
  // Sequences, multiples of large powers of two and random keys, the extremes among them.
  for (const uint64_t kind : {0u, 1u, 2u}) {
    Rng rng(kind);
    RowIndex index;
    std::map<uint64_t, uint32_t> truth{{0, 0}, {UINT64_MAX, 1}};
    while (truth.size() < 5000) {
      const uint64_t next = truth.size();
      truth.emplace(kind == 0   ? next
                    : kind == 1 ? next << 40
                                : rng.Next(),
                    static_cast<uint32_t>(next));
    }
    EXPECT_EQ(index.Find(0), nullptr);
    for (const auto& [key, row] : truth) {
      index.Reserve(1);
      RowIndex::Entry* entry = index.FindOrInsert(key);
      ASSERT_EQ(entry->row(), RowIndex::kNoRow);
      entry->set_row(row);
      entry->generation = row + 1;
    }
    EXPECT_EQ(index.size(), truth.size());
    for (const auto& [key, row] : truth) {
      ASSERT_EQ(index.FindOrInsert(key)->row(), row);
      ASSERT_EQ(index.Find(key)->generation, row + 1);  // kept over growth
    }
    EXPECT_EQ(index.size(), truth.size());
    for (int i = 0; i < 1000; ++i) {
      const uint64_t key = rng.Next();
      ASSERT_EQ(index.Find(key) != nullptr, truth.contains(key));
    }
  }
}

TEST(RowIndexTest, PointersStayValidWithinWhatWasReserved) {
  RowIndex index;
  index.Reserve(1000);
  std::map<uint64_t, RowIndex::Entry*> entries;
  for (uint64_t key = 0; key < 1000; ++key) {
    entries[key] = index.FindOrInsert(key);
    entries[key]->set_row(static_cast<uint32_t>(key));
  }
  for (const auto& [key, entry] : entries) ASSERT_EQ(index.Find(key), entry);
}

TEST(RowIndexTest, GrowsInStepsThatDoNotDependOnItsSize) {
  constexpr uint32_t kKeys = 200'000;
  constexpr size_t kBatch = 32;
  RowIndex index;
  size_t moved = 0, largest = 0, in_between = 0;
  for (uint32_t begin = 0; begin < kKeys; begin += kBatch) {
    const size_t looked = index.Reserve(kBatch);
    moved += looked;
    largest = std::max(largest, looked);
    if (looked > 0) ++in_between;
    for (uint32_t row = begin; row < begin + kBatch; ++row) {
      RowIndex::Entry* const entry = index.FindOrInsert(uint64_t{row} << 20);
      ASSERT_EQ(entry->row(), RowIndex::kNoRow);
      entry->set_row(row);
      entry->generation = 1;
    }
    // An older key, moved already or not: the newest generation is what counts afterwards.
    const uint32_t some = static_cast<uint32_t>(Mix64(begin) % (begin + kBatch));
    RowIndex::Entry* const entry = index.FindOrInsert(uint64_t{some} << 20);
    ASSERT_EQ(entry->row(), some);
    ++entry->generation;
    ASSERT_EQ(index.Find(uint64_t{some} << 20)->generation, entry->generation);
  }
  EXPECT_LE(largest, 2 * RowIndex::kMovesPerKey * kBatch);
  EXPECT_GT(moved, kKeys / 2) << "it has grown";
  EXPECT_GT(in_between, 100u) << "and not at once";
  EXPECT_EQ(index.size(), kKeys);
  size_t generations = 0;
  for (uint32_t row = 0; row < kKeys; ++row) {
    ASSERT_EQ(index.Find(uint64_t{row} << 20)->row(), row);
    generations += index.Find(uint64_t{row} << 20)->generation;
  }
  EXPECT_EQ(generations, kKeys + kKeys / kBatch) << "no change was lost in a move";
}

TEST(RowIndexTest, OfTheArraysThatItHasOutgrownAtMostOneWaitsToBeFreed) {
  RowIndex index;
  for (uint32_t row = 0; row < 150'000; ++row) {
    index.Reserve(1);
    index.FindOrInsert(row)->set_row(row);
  }
  Garbage garbage, nothing;
  index.TakeGarbage(&garbage);
  EXPECT_EQ(garbage.size(), 1u);
  index.TakeGarbage(&nothing);
  EXPECT_TRUE(nothing.empty());
}

TEST(RowIndexTest, LargeAndSmallReservesMayFollowEachOther) {
  Rng rng(3);
  RowIndex index;
  uint32_t rows = 0;
  while (rows < 100'000) {
    const size_t more = rng.Below(4) == 0 ? rng.Below(3000) : rng.Below(40);
    EXPECT_LE(index.Reserve(more), 2 * RowIndex::kMovesPerKey * more);
    for (size_t i = rng.Below(more + 1); i > 0; --i) {
      index.FindOrInsert(rows)->set_row(rows);
      ++rows;
    }
  }
  for (uint32_t row = 0; row < rows; ++row) ASSERT_EQ(index.Find(row)->row(), row);
}

}  // namespace
}  // namespace muster::ps
