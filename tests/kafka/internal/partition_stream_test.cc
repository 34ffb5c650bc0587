#include "kafka/internal/partition_stream.h"

#include <gtest/gtest.h>

namespace muster::kafka::internal {
namespace {

TEST(WorthReadingAheadTest, OnlyIfAnotherRangeIsInTheLog) {
  const RangeReader::Range range{"t", 0, 100, 150};
  EXPECT_FALSE(WorthReadingAhead(range, RD_KAFKA_OFFSET_INVALID));
  EXPECT_FALSE(WorthReadingAhead(range, 120));
  EXPECT_FALSE(WorthReadingAhead(range, 150)) << "the end of the log";
  EXPECT_FALSE(WorthReadingAhead(range, 199));
  EXPECT_TRUE(WorthReadingAhead(range, 200));
}

}  // namespace
}  // namespace muster::kafka::internal
