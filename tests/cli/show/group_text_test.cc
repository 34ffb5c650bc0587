#include "cli/show/group_text.h"

#include <gmock/gmock.h>

#include "cli/show/text_output.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobStatus JobWithGroup() {
  JobStatus status;
  status.name = "demo";
  status.state = JobState::kRunning;
  status.progress.records_per_second = 3'465;
  status.group = GroupStatus{.lineage = 1,
                             .attempt = 7,
                             .step = 1'204,
                             .step_in_work = 1'205,
                             .checkpoint_step = 1'100,
                             .global_batch = 256,
                             .members = 2,
                             .members_min = 1,
                             .members_max = 2,
                             .waits = "",
                             .processes = {}};
  status.group->processes = {
      {.worker = "worker-0",
       .standing = GroupStanding::kMember,
       .rank = 1,
       .phase = MemberPhase::kComputing,
       .share_minibatches = 3,
       .minibatch_us = 12'340,
       .step = 1'204,
       .waits = "",
       .suspected = true},
      {.worker = "worker-1",
       .standing = GroupStanding::kMember,
       .rank = 0,
       .phase = MemberPhase::kVoted,
       .share_minibatches = 5,
       .minibatch_us = std::nullopt,
       .step = 1'204,
       .waits = ""},
      {.worker = "worker-2",
       .standing = GroupStanding::kWaiting,
       .rank = std::nullopt,
       .minibatch_us = std::nullopt,
       .step = std::nullopt,
       .waits = "the group has all of its 2 members (spec.group.maxMembers)"}};
  return status;
}

TEST(GroupTextTest, AJobWithoutAGroupShowsNothingOfIt) {
  JobStatus status;
  EXPECT_EQ(GroupText(status, 0), "");
  EXPECT_THAT(StatusText(status), Not(HasSubstr("group")));
}

TEST(GroupTextTest, TheGroupAndItsProcesses) {
  const std::string text =
      "group: step 1,204 in attempt 7, 2 members (of 1 to 2), about 812 steps/min, checkpoint of "
      "step 1,100\n"
      "WORKER    STANDING           PHASE      SHARE   MINIBATCH  STEP   RANK\n"
      "worker-0  member, suspected  computing  3 of 8  12.3 ms    1,204  1\n"
      "worker-1  member             voted      5 of 8  -          1,204  0\n"
      "worker-2  waiting            idle       -       -          -      -\n"
      "  worker-2: the group has all of its 2 members (spec.group.maxMembers)\n";
  EXPECT_EQ(GroupText(JobWithGroup(), 0), text);
  EXPECT_THAT(StatusText(JobWithGroup()), HasSubstr(text));
}

TEST(GroupTextTest, ANarrowTerminalShowsWhatMattersMost) {
  JobStatus status = JobWithGroup();
  status.group->waits = "the group has 2 members and waits for 1 more (spec.group.minMembers)";
  EXPECT_EQ(GroupText(status, 79),
            "group: step 1,204, 2 members, about 812 steps/min, checkpoint of step 1,100\n"
            "  waits: the group has 2 members and waits for 1 more (spec.group.minMembers)\n"
            "WORKER    STANDING           PHASE      SHARE   MINIBATCH  STEP   RANK\n"
            "worker-0  member, suspected  computing  3 of 8  12.3 ms    1,204  1\n"
            "worker-1  member             voted      5 of 8  -          1,204  0\n"
            "worker-2  waiting            idle       -       -          -      -\n"
            "  worker-2: the group has all of its 2 members (spec.group.maxMembers)\n");
  EXPECT_EQ(GroupText(status, 39),
            "group: step 1,204, 2 members\n"
            "  waits: the group has 2 members ...\n"
            "WORKER    PHASE      SHARE  +4 columns\n"
            "worker-0  computing  3 of 8\n"
            "worker-1  voted      5 of 8\n"
            "worker-2  idle       -\n"
            "  worker-2: the group has all of ...\n");
  EXPECT_THAT(StatusText(status, EpochsShown::kNewest, 39), HasSubstr(GroupText(status, 39)));
}

TEST(GroupTextTest, WhatIsNotKnownIsLeftOut) {
  JobStatus status = JobWithGroup();
  status.progress.records_per_second.reset();
  status.group->checkpoint_step = 0;
  status.group->processes.clear();
  EXPECT_EQ(GroupText(status, 0),
            "group: step 1,204 in attempt 7, 2 members (of 1 to 2), no checkpoint\n");
  status.state = JobState::kSucceeded;
  EXPECT_EQ(GroupText(status, 0), "group: step 1,204 in attempt 7, no checkpoint\n");
}

TEST(GroupTextTest, InOneLineTheGroupSaysWhatItWaitsFor) {
  JobStatus status = JobWithGroup();
  EXPECT_EQ(GroupInOneLine(status, 3'465, 0),
            "group: step 1,204, 2 members (of 1 to 2), about 812 steps/min");
  status.group->processes[0].awaited = true;
  EXPECT_EQ(GroupInOneLine(status, 3'465, 0),
            "group: step 1,204, 2 members (of 1 to 2), about 812 steps/min, waits for worker-0");
  EXPECT_EQ(GroupInOneLine(status, std::nullopt, 50),
            "group: step 1,204, 2 members, waits for worker-0");
  EXPECT_EQ(GroupInOneLine(status, 3'465, 32), "group: step 1,204, 2 members");
  status.group->processes[1].awaited = true;
  EXPECT_THAT(GroupInOneLine(status, 3'465, 0), Not(HasSubstr("waits"))) << "all compute";
  status.group->waits = "the group has 1 member and waits for 1 more (spec.group.minMembers)";
  EXPECT_EQ(GroupInOneLine(status, 0, 0),
            "group: step 1,204, 2 members, waits: the group has 1 member and waits for 1 more "
            "(spec.group.minMembers)");
  status.state = JobState::kSucceeded;
  EXPECT_EQ(GroupInOneLine(status, 0, 0), "");
  EXPECT_EQ(GroupInOneLine(JobStatus(), 0, 0), "");
}

}  // namespace
}  // namespace muster
