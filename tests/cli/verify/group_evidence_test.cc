#include "cli/verify/group_evidence.h"

#include <gtest/gtest.h>

namespace muster::verify {
namespace {

TEST(ChangesInTest, CountsAttemptsAndRollbacks) {
  MasterEvents events;
  for (const char* kind : {"group-began", "group-changed", "node-exited", "group-rolled-back",
                           "group-changed", "group-changed"}) {
    events.events.push_back({.kind = kind});
  }
  const GroupChanges changes = ChangesIn(events);
  EXPECT_EQ(changes.attempts, 3u);
  EXPECT_EQ(changes.rollbacks, 1u);
}

TEST(JudgementTest, GroupMustBeRightToo) {
  Judgement judgement;
  EXPECT_TRUE(judgement.ok());
  judgement.group.emplace();
  EXPECT_TRUE(judgement.ok());
  judgement.group->verdict.different = 1;
  EXPECT_FALSE(judgement.ok());
  judgement.group->verdict.different = 0;
  judgement.verdict.lost = 1;
  EXPECT_FALSE(judgement.ok());
}

}  // namespace
}  // namespace muster::verify
