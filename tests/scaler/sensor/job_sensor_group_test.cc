#include <gtest/gtest.h>

#include "scaler/sensor/job_sensor.h"
#include "tests/scaler/sensor/sensed_job.h"

namespace muster::scaler {
namespace {

TEST(JobSensorGroupTest, WhichMemberTheGroupAwaitsAndHowManyWait) {
  SensedJob job;
  const auto process = [](const char* worker, bool awaited) {
    return GroupProcessStatus{.worker = worker,
                              .standing = GroupStanding::kMember,
                              .rank = std::nullopt,
                              .minibatch_us = std::nullopt,
                              .step = 41,
                              .waits = "",
                              .awaited = awaited};
  };
  job.status.group =
      GroupStatus{.step = 41,
                  .step_in_work = 42,
                  .waits = "",
                  .processes = {process("worker-0", false), process("worker-1", true),
                                process("worker-7", true)}};
  const JobView& view = job.Second();
  EXPECT_EQ(FindNode(view, "worker-1")->samples.back().worker.awaited_step, 42u);
  EXPECT_EQ(FindNode(view, "worker-1")->samples.back().worker.peers_waiting, 1u);
  EXPECT_EQ(FindNode(view, "worker-0")->samples.back().worker.awaited_step, 0u);
  job.status.group->processes[1].awaited = false;
  EXPECT_EQ(FindNode(job.Second(), "worker-1")->samples.back().worker.awaited_step, 0u);
}

TEST(JobSensorGroupTest, WhatAGroupAwaitsFromLearnersAndFromThoseWhoHaveNotJoined) {
  SensedJob job;
  job.status.group = GroupStatus{.step = 41,
                                 .step_in_work = 42,
                                 .waits = "",
                                 .processes = {{.worker = "worker-0",
                                                .standing = GroupStanding::kLearner,
                                                .rank = std::nullopt,
                                                .minibatch_us = std::nullopt,
                                                .step = std::nullopt,
                                                .waits = "",
                                                .awaited = true,
                                                .moved = 7}}};
  const JobView& view = job.Second();
  const WorkerTotals& learner = FindNode(view, "worker-0")->samples.back().worker;
  EXPECT_EQ(learner.group_part, GroupPart::kLearn);
  EXPECT_EQ(learner.awaited_step, 1u) << "it has no state";
  EXPECT_EQ(learner.peers_waiting, 0u);
  EXPECT_EQ(learner.group_moved, 7u);
  EXPECT_EQ(FindNode(view, "worker-1")->samples.back().worker.group_part, GroupPart::kJoin);
  job.status.group.reset();
  EXPECT_EQ(FindNode(job.Second(), "worker-1")->samples.back().worker.group_part, GroupPart::kNone);
}

}  // namespace
}  // namespace muster::scaler
