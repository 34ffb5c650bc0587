#include "ps/engine/table_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::ps {
namespace {

using ::testing::ElementsAre;

TEST(TableImageTest, TakesEachRowAsItComesFirst) {
  TableImage image(TableId(3), 2, /*bound=*/100, /*count=*/2);
  const float before[] = {1, 2}, after[] = {8, 9};
  image.Add(64, 1000, before);
  image.Add(64, 1000, after);
  image.Add(99, 7, after);
  const RowImage rows = image.Take();
  EXPECT_EQ(rows.table, TableId(3));
  EXPECT_THAT(rows.keys, ElementsAre(1000, 7));
  EXPECT_THAT(rows.rows, ElementsAre(1, 2, 8, 9));
}

TEST(RowSetTest, KnowsWhatWasAdded) {
  RowSet rows(129);
  for (const uint32_t row : {0u, 63u, 64u, 128u}) {
    EXPECT_TRUE(rows.Add(row));
    EXPECT_FALSE(rows.Add(row));
  }
  EXPECT_TRUE(rows.Add(127));
}

}  // namespace
}  // namespace muster::ps
