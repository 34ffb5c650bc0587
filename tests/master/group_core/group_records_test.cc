#include "master/group_core/group_records.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(GroupRecordsTest, ARecordReplacesTheFormerOfItsKind) {
  GroupRecords records;
  Apply(StepRecord{LineageNumber(1), StepNumber(1), AttemptNumber(1), 5, {}, 8}, &records);
  Apply(GroupRecord{LineageNumber(1), {}, AttemptNumber(2), {{"worker-0", 4}}}, &records);
  const StepRecord second{LineageNumber(1), StepNumber(2), AttemptNumber(2), 6, {}};
  Apply(second, &records);
  EXPECT_EQ(records.step, second);
  EXPECT_EQ(records.group->attempt, AttemptNumber(2));
  EXPECT_FALSE(records.model.has_value());
  Apply(GroupModelRecord{{}, 7}, &records);
  Apply(CheckpointRecord{{LineageNumber(1), StepNumber(2)}, {}}, &records);
  EXPECT_EQ(records.model->initial_digest, 7u);
  EXPECT_EQ(records.checkpoint->label.step, StepNumber(2));
}

}  // namespace
}  // namespace muster
