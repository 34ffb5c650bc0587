#include "scaler/service/picture.h"

#include <gmock/gmock.h>

namespace muster::scaler {
namespace {

using ::testing::IsEmpty;

class PictureTest : public ::testing::Test {
 protected:
  PictureTest() {
    shape_.roles[NodeRole::kWorker].requested = {.cpus = 1, .memory_bytes = 64 << 20};
    NodeStatus& worker = status_.nodes.emplace_back();
    worker.name = "worker-0";
    worker.state = NodeState::kRunning;
    worker.pid = 100;
    worker.start = 2;
    worker.worker = WorkerStatus{.times = {.minibatches_finished = 7}};
    status_.nodes.emplace_back().name = "master";
    status_.state = JobState::kRunning;
    kept_ = {.name = "worker-0",
             .role = NodeRole::kWorker,
             .starts = 2,
             .state = KeptNode::State::kRunning,
             .pid = 100,
             .limits = {.cpus = 2, .memory_bytes = 128 << 20}};
  }
  rest::Node Draw() {
    PictureInput input{.job_name = "flights", .status = &status_, .kept = {kept_}};
    const Picture picture = DrawPicture(input, JobSensor(shape_), shape_);
    for (const rest::Node& node : picture.nodes.nodes) {
      if (node.name == "worker-0") return node;
    }
    return {};
  }

  JobShape shape_;
  JobStatus status_;
  KeptNode kept_;
};

TEST_F(PictureTest, ANodeIsWhatKeeperAndMasterSayTogether) {
  const rest::Node node = Draw();
  EXPECT_EQ(node.state, NodeState::kRunning);
  EXPECT_EQ(node.start, 2u);
  EXPECT_EQ(node.restarts, 1u);
  EXPECT_EQ(node.limits.memory_bytes, 128u << 20);
  EXPECT_EQ(node.requested.memory_bytes, 64u << 20);
  ASSERT_TRUE(node.worker.has_value());
  EXPECT_EQ(node.worker->times.minibatches_finished, 7u);
  EXPECT_FALSE(node.usage.has_value()) << "not measured";
}

TEST_F(PictureTest, WhatTheMasterSaysIsShownAsItIs) {
  status_.progress = {.records_expected = 200, .records_done = 150, .records_committed = 130};
  status_.counters.replayed_shards = 4;
  status_.datasets = {{.name = "clicks", .stream = StreamStatus{.topic = "t", .lag_ms = 1'500}}};
  status_.nodes.emplace_back().name = "ps-0";
  status_.nodes.back().server = ServerStatus{.counters = {.rows = 9}};
  const PictureInput input{.status = &status_};
  const Picture picture = DrawPicture(input, JobSensor(shape_), shape_);
  EXPECT_EQ(picture.job.state, JobState::kRunning);
  EXPECT_EQ(picture.job.progress.records_committed, 130u);
  EXPECT_EQ(picture.job.counters.replayed_shards, 4u);
  EXPECT_EQ(picture.datasets.datasets.at(0).stream->lag_ms, 1'500u);
  EXPECT_EQ(rest::FindNode(picture, "ps-0").value()->server->counters.rows, 9u);
}

TEST_F(PictureTest, TheUsageOfTheMasterIsThatOfItsProcess) {
  NodeStatus& master = status_.nodes.back();
  ASSERT_EQ(master.name, "master");
  master.pid = 40;
  ProcessMeter meter(std::chrono::seconds(3));
  NodeUsage used;
  used.memory_bytes = 5 << 20;
  meter.OnReading("master", 40, used, TimePoint());
  const auto usage = [&] {
    const PictureInput input{.status = &status_, .own = &meter};
    const Picture picture = DrawPicture(input, JobSensor(shape_), shape_);
    return rest::FindNode(picture, "master").value()->usage;
  };
  ASSERT_TRUE(usage().has_value());
  EXPECT_EQ(usage()->memory_bytes, 5u << 20);
  master.pid = 41;
  EXPECT_FALSE(usage().has_value()) << "that was another process";
}

TEST_F(PictureTest, FiguresOfAnEarlierLifeAreNotShown) {
  kept_.starts = 3;  // its pid is the same: pids come again
  const rest::Node node = Draw();
  EXPECT_EQ(node.state, NodeState::kStarting);
  EXPECT_EQ(node.start, 3u);
  EXPECT_FALSE(node.worker.has_value());
}

TEST_F(PictureTest, WhereNodesHaveNoPidsTheKeeperSaysWhoLives) {
  kept_.pid = 0;  // as of a pod
  EXPECT_EQ(Draw().state, NodeState::kRunning);
  EXPECT_TRUE(Draw().worker.has_value());
  kept_.state = KeptNode::State::kReporting;
  EXPECT_TRUE(Draw().worker.has_value()) << "of the life that has just ended";
  kept_.state = KeptNode::State::kWaiting;
  EXPECT_FALSE(Draw().worker.has_value());
}

TEST_F(PictureTest, StatesOfTheKeeper) {
  const auto state_of = [this](KeptNode::State state) {
    kept_.state = state;
    return Draw().state;
  };
  EXPECT_EQ(state_of(KeptNode::State::kReporting), NodeState::kExited);
  EXPECT_EQ(state_of(KeptNode::State::kWaiting), NodeState::kExited);
  EXPECT_EQ(state_of(KeptNode::State::kFinished), NodeState::kFinished);
  EXPECT_EQ(state_of(KeptNode::State::kDraining), NodeState::kRunning);
  EXPECT_EQ(Draw().drain, DrainState::kDraining);
  kept_.starts = 0;
  kept_.pid = 0;
  EXPECT_EQ(state_of(KeptNode::State::kWaiting), NodeState::kStarting);
}

TEST_F(PictureTest, ANodeWithoutAPlaceSaysWhy) {
  kept_.starts = 2;
  kept_.no_process = true;
  kept_.wait = NodeWait::kForbidden;
  kept_.wait_reason = "cannot create pods";
  const rest::Node node = Draw();
  EXPECT_EQ(node.state, NodeState::kWaiting);
  EXPECT_EQ(node.wait, NodeWait::kForbidden);
  EXPECT_EQ(node.wait_reason, "cannot create pods");
}

TEST_F(PictureTest, TheJobFilesRangeOfWorkersIsShown) {
  shape_.workers_min = 2;
  shape_.workers_max = 6;
  const PictureInput input{.kept = {kept_}};
  const rest::Job job = DrawPicture(input, JobSensor(shape_), shape_).job;
  EXPECT_EQ(job.workers_min, 2u);
  EXPECT_EQ(job.workers_max, 6u);
}

TEST_F(PictureTest, TheIntervalOfSnapshotsIsShown) {
  shape_.snapshot_interval = std::chrono::milliseconds(2'500);
  EXPECT_EQ(DrawPicture({}, JobSensor(shape_), shape_).job.snapshot_interval_s, 2.5);
}

TEST_F(PictureTest, WithoutAMasterThereAreNodesAllTheSame) {
  PictureInput input{.job_name = "flights", .job_id = "id-1", .kept = {kept_}};
  input.workers_wanted = 3;
  input.limits_remark = "no groups";
  const Picture picture = DrawPicture(input, JobSensor(shape_), shape_);
  ASSERT_EQ(picture.nodes.nodes.size(), 1u);
  EXPECT_EQ(picture.job.name, "flights");
  EXPECT_EQ(picture.job.workers_wanted, 3u);
  EXPECT_EQ(picture.job.workers_min, 1u);
  EXPECT_EQ(picture.job.workers_max, kWorkersMax);
  EXPECT_EQ(picture.job.limits_remark, "no groups");
  EXPECT_EQ(picture.job.state, JobState::kUnknown);
  EXPECT_FALSE(picture.job.master_reachable);
  EXPECT_THAT(picture.datasets.datasets, IsEmpty());
  EXPECT_FALSE(picture.job.progress.remaining_seconds.has_value()) << "nothing is known of it";
}

}  // namespace
}  // namespace muster::scaler
