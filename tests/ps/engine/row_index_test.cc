#include "ps/engine/row_index.h"

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
      ASSERT_EQ(entry->row, RowIndex::kNoRow);
      entry->row = row;
      entry->generation = row + 1;
    }
    EXPECT_EQ(index.size(), truth.size());
    for (const auto& [key, row] : truth) {
      ASSERT_EQ(index.FindOrInsert(key)->row, row);
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
    entries[key]->row = static_cast<uint32_t>(key);
  }
  for (const auto& [key, entry] : entries) ASSERT_EQ(index.Find(key), entry);
}

}  // namespace
}  // namespace muster::ps
