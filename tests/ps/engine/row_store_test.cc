#include "ps/engine/row_store.h"

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

TEST(RowStoreTest, RowsNeverMoveAndNeverOverlap) {
  for (const uint32_t floats : {1u, 3u, 16u, 129u}) {
    RowStore store(floats);
    std::vector<float*> rows;
    for (uint32_t i = 0; i < 3000; ++i) {
      ASSERT_EQ(store.Append(), i);
      rows.push_back(store.Row(i));
      std::fill_n(rows.back(), floats, static_cast<float>(i));
    }
    EXPECT_EQ(store.size(), 3000u);
    EXPECT_GE(store.bytes(), 3000 * floats * sizeof(float));
    EXPECT_LE(store.bytes(), 3000 * floats * sizeof(float) * 9 / 8) << "an eighth has no rows yet";
    for (uint32_t i = 0; i < 3000; ++i) {
      ASSERT_EQ(store.Row(i), rows[i]);
      for (uint32_t column = 0; column < floats; ++column) {
        ASSERT_EQ(rows[i][column], static_cast<float>(i)) << "row " << i;
      }
    }
  }
}

}  // namespace
}  // namespace muster::ps
