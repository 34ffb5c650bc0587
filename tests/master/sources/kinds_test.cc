#include "master/sources/kinds.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(MakeSourceTest, EveryKindHasOne) {
  JobSpec job;
  TopicSpec topic;
  topic.topic = "clicks";
  job.datasets = {{.name = "a", .source = LinesSpec{.files = {"a.csv"}}},
                  {.name = "b", .source = topic},
                  {.name = "c", .source = RangeSpec{.records = 9}}};
  EXPECT_FALSE(MakeSource(job, DatasetId(0))->Growth().has_value());
  EXPECT_EQ(MakeSource(job, DatasetId(1))->Growth()->topic, "clicks");
  EXPECT_EQ(MakeSource(job, DatasetId(2))->layout()->record_count(), 9u);
}

}  // namespace
}  // namespace muster
