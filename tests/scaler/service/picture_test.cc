#include "scaler/service/picture.h"

#include <gmock/gmock.h>

namespace muster::scaler {
namespace {

using ::testing::IsEmpty;

class PictureTest : public ::testing::Test {
 protected:
  PictureTest() {
    shape_.roles[NodeRole::kWorker].requested = {.cpus = 1, .memory_bytes = 64 << 20};
    v1::NodeStatus* worker = status_.add_nodes();
    worker->set_name("worker-0");
    worker->set_role("worker");
    worker->set_state("running");
    worker->set_pid(100);
    worker->set_start(2);
    worker->mutable_times()->set_minibatches_finished(7);
    status_.add_nodes()->set_name("master");
    status_.set_state(v1::JOB_STATE_RUNNING);
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
  v1::JobStatus status_;
  KeptNode kept_;
};

TEST_F(PictureTest, ANodeIsWhatKeeperAndMasterSayTogether) {
  const rest::Node node = Draw();
  EXPECT_EQ(node.state, "running");
  EXPECT_EQ(node.start, 2u);
  EXPECT_EQ(node.restarts, 1u);
  EXPECT_EQ(node.limits.memory_bytes, 128u << 20);
  EXPECT_EQ(node.requested.memory_bytes, 64u << 20);
  ASSERT_TRUE(node.worker.has_value());
  EXPECT_EQ(node.worker->minibatches, 7u);
  EXPECT_FALSE(node.usage.has_value()) << "not measured";
}

TEST_F(PictureTest, FiguresOfAnEarlierLifeAreNotShown) {
  kept_.starts = 3;  // its pid is the same: pids come again
  const rest::Node node = Draw();
  EXPECT_EQ(node.state, "starting");
  EXPECT_EQ(node.start, 3u);
  EXPECT_FALSE(node.worker.has_value());
}

TEST_F(PictureTest, StatesOfTheKeeper) {
  const auto state_of = [this](KeptNode::State state) {
    kept_.state = state;
    return Draw().state;
  };
  EXPECT_EQ(state_of(KeptNode::State::kReporting), "exited");
  EXPECT_EQ(state_of(KeptNode::State::kWaiting), "exited");
  EXPECT_EQ(state_of(KeptNode::State::kFinished), "finished");
  EXPECT_EQ(state_of(KeptNode::State::kDraining), "running");
  EXPECT_EQ(Draw().drain, "draining");
  kept_.starts = 0;
  kept_.pid = 0;
  EXPECT_EQ(state_of(KeptNode::State::kWaiting), "starting");
}

TEST_F(PictureTest, TheJobFilesRangeOfWorkersIsShown) {
  shape_.workers_min = 2;
  shape_.workers_max = 6;
  const PictureInput input{.kept = {kept_}};
  const rest::Job job = DrawPicture(input, JobSensor(shape_), shape_).job;
  EXPECT_EQ(job.workers_min, 2u);
  EXPECT_EQ(job.workers_max, 6u);
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
  EXPECT_FALSE(picture.job.master_reachable);
  EXPECT_THAT(picture.datasets.datasets, IsEmpty());
  EXPECT_FALSE(picture.job.progress.remaining_seconds.has_value()) << "nothing is known of it";
}

}  // namespace
}  // namespace muster::scaler
