#include "scaler/decision/human_orders.h"

#include <gmock/gmock.h>

#include "scaler/decision/event_drafts.h"
#include "tests/scaler/model/fake_job.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler {
namespace {

using ::absl::StatusCode;
using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HumanOrdersTest : public ::testing::Test {
 protected:
  absl::StatusOr<Granted> Ask(Order order, const std::string& reason = "") {
    job_.Tick();
    return Judge({std::move(order), reason}, job_.view, facts_);
  }

  FakeJob job_ =
      FakeJob()
          .Add(NodeRole::kServer, 1, {.memory_mib = 300}, {.memory_bytes = 512 * kMiB})
          .Add(NodeRole::kWorker, 2, {.memory_mib = 100}, {.cpus = 1, .memory_bytes = 256 * kMiB});
  HumanFacts facts_{
      .limits_remark = "", .policies = {"hang", "worker-count"}, .paused = {"hang"}, .workers = 2};
};

TEST_F(HumanOrdersTest, ARestart) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted order,
                              Ask(RestartNode{.node = "worker-1"}, "looks stuck"));
  EXPECT_EQ(order.event.kind, "action");
  EXPECT_EQ(order.event.action, "restart");
  EXPECT_EQ(order.event.target, "worker-1");
  EXPECT_EQ(order.event.because, "looks stuck");
  const auto& restart = std::get<RestartNode>(order.order);
  EXPECT_EQ(restart.node, "worker-1");
  EXPECT_EQ(restart.only_start, 1u) << "this life, and not the one after it";
  EXPECT_FALSE(restart.charged);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted quiet,
                              Ask(RestartNode{.node = "ps-0", .only_start = 1}));
  EXPECT_EQ(quiet.event.because, "a person gave this order");
}

TEST_F(HumanOrdersTest, WithoutNodesNoneIsNamed) {
  job_.view.nodes.clear();
  EXPECT_THAT(Ask(RestartNode{.node = "ps-0"}),
              StatusIs(StatusCode::kNotFound,
                       HasSubstr("there is no node 'ps-0': the scaler runs none now")));
}

TEST_F(HumanOrdersTest, RefusedRestarts) {
  EXPECT_THAT(Ask(RestartNode{.node = "worker-9"}),
              StatusIs(StatusCode::kNotFound,
                       "there is no node 'worker-9'; there are ps-0, worker-0, worker-1"));
  EXPECT_THAT(Ask(RestartNode{.node = "master"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("`muster run`")));
  EXPECT_THAT(Ask(RestartNode{.node = "worker-0", .only_start = 2}),
              StatusIs(StatusCode::kAborted, HasSubstr("only_start is 2")));
  job_.Node("worker-0").state = NodeState::kDraining;
  EXPECT_THAT(Ask(RestartNode{.node = "worker-0"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is ending")));
  job_.Node("worker-0").state = NodeState::kPlanned;
  EXPECT_THAT(Ask(RestartNode{.node = "worker-0"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("not been started")));
  job_.Node("worker-0").state = NodeState::kExited;
  EXPECT_THAT(Ask(RestartNode{.node = "worker-0"}), IsOk());
}

TEST_F(HumanOrdersTest, ANodeOfAnotherMachineTakesNoOrders) {
  facts_.joined = {{"far", "gpu-2"}};
  for (const Order& order :
       std::vector<Order>{RestartNode{.node = "far"}, ResizeNode::To("far", {.cpus = 1})}) {
    EXPECT_THAT(Ask(order), StatusIs(StatusCode::kFailedPrecondition,
                                     HasSubstr("`muster join` runs far on gpu-2")));
  }
}

TEST_F(HumanOrdersTest, TheMasterDrainsANodeOfAnotherMachine) {
  facts_.joined = {{"far", "gpu-2"}};
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted order, Ask(EndNode{"far"}));
  EXPECT_EQ(order.event.action, "drain");
  EXPECT_EQ(order.event.target, "far");
  EXPECT_EQ(FigureOf(order.event, kJoinedFigure), 1);
  job_.view.activity = Activity::kOver;
  EXPECT_THAT(Ask(EndNode{"far"}), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("over")));
}

TEST_F(HumanOrdersTest, ADrainOfANode) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted order, Ask(EndNode{"worker-1"}));
  EXPECT_EQ(order.event.action, "drain");
  EXPECT_EQ(std::get<EndNode>(order.order).node, "worker-1");
  EXPECT_THAT(Ask(EndNode{"ps-0"}), IsOk());

  job_.Node("worker-1").state = NodeState::kDraining;
  EXPECT_THAT(Ask(EndNode{"worker-1"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already")));
  job_.view.workers_max = 4;  // 2 to 4
  EXPECT_THAT(Ask(EndNode{"worker-0"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("minReplicas is 2")));
  facts_.workers = 3;
  EXPECT_THAT(Ask(EndNode{"worker-0"}), IsOk());
  job_.view.workers_max = 2;  // the file gives no range: people may have any number
  facts_.workers = 1;
  EXPECT_THAT(Ask(EndNode{"worker-0"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("the only worker")));
  job_.Node("ps-0").drained = true;
  EXPECT_THAT(Ask(EndNode{"ps-0"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is already drained")));
  job_.Node("ps-0").drained = false;
  job_.Node("ps-0").state = NodeState::kStarting;
  EXPECT_THAT(Ask(EndNode{"ps-0"}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("does not serve")));
  EXPECT_THAT(Ask(EndNode{"ps-7"}), StatusIs(StatusCode::kNotFound, HasSubstr("'ps-7'")));
}

TEST_F(HumanOrdersTest, AResize) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const Granted order, Ask(ResizeNode{.node = "ps-0", .memory_bytes = 1024 * kMiB}, "grows"));
  EXPECT_EQ(order.event.action, "resize");
  EXPECT_EQ(LimitsOf(order.event.before).memory_bytes, 512 * kMiB);
  EXPECT_EQ(LimitsOf(order.event.after).memory_bytes, 1024 * kMiB);
  EXPECT_EQ(std::get<ResizeNode>(order.order).After({}), (Resources{.memory_bytes = 1024 * kMiB}));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted cpus, Ask(ResizeNode{.node = "worker-0", .cpus = 2}));
  EXPECT_EQ(std::get<ResizeNode>(cpus.order).After({}),
            (Resources{.cpus = 2, .memory_bytes = 256 * kMiB}))
      << "what is not named stays";
}

TEST_F(HumanOrdersTest, MemoryBeyondWhatThereIsIsRefused) {
  NodeView& server = job_.Node("ps-0");
  server.max.memory_bytes = 1024 * kMiB;
  EXPECT_THAT(
      Ask(ResizeNode{.node = "ps-0", .memory_bytes = 1025 * kMiB}),
      StatusIs(StatusCode::kResourceExhausted,
               AllOf(HasSubstr("memory of 1025 MiB for ps-0: the job file's maximum for ps"),
                     HasSubstr("allows 1 GiB"))));
  job_.view.budget.memory_bytes = 1200 * kMiB;
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 700 * kMiB}),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("budget allows 688 MiB")));
  job_.view.machine.memory_bytes = 1100 * kMiB;
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 600 * kMiB}),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("machine allows 588 MiB")));
  server.min.memory_bytes = 400 * kMiB;
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 399 * kMiB}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("minimum is 400 MiB")));
}

TEST_F(HumanOrdersTest, MemoryBelowWhatItUsesIsRefused) {
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 314 * kMiB}),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("uses 300 MiB"), HasSubstr("at least 315 MiB"))));
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 315 * kMiB}), IsOk());
  job_.Node("ps-0").state = NodeState::kExited;
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 100 * kMiB}), IsOk())
      << "of the start to come";
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 512 * kMiB}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("these limits already")));
}

TEST_F(HumanOrdersTest, CpuIsRefusedBeyondItsBoundsAndWithoutTheKernel) {
  job_.view.budget.cpus = 3;
  EXPECT_THAT(Ask(ResizeNode{.node = "worker-0", .cpus = 2.5}),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("budget allows 2")));
  EXPECT_THAT(Ask(ResizeNode{.node = "worker-0", .cpus = 0}),
              StatusIs(StatusCode::kOutOfRange, HasSubstr("0 cores for worker-0")));
  facts_.limits_remark = "/sys/fs/cgroup cannot be written";
  EXPECT_THAT(Ask(ResizeNode{.node = "worker-0", .cpus = 1.5}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("/sys/fs/cgroup")));
  EXPECT_THAT(Ask(ResizeNode{.node = "worker-0", .memory_bytes = 300 * kMiB}), IsOk())
      << "memory is watched all the same";
}

TEST_F(HumanOrdersTest, AScale) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted order, Ask(ScaleWorkers{4}, "hurry"));
  EXPECT_EQ(order.event.action, "scale");
  EXPECT_EQ(order.event.target, "workers");
  EXPECT_EQ(order.event.before.at("workers"), 2);
  EXPECT_EQ(order.event.after.at("workers"), 4);
  EXPECT_EQ(std::get<ScaleWorkers>(order.order).workers, 4u);
}

TEST_F(HumanOrdersTest, RefusedScales) {
  EXPECT_THAT(Ask(ScaleWorkers{0}), StatusIs(StatusCode::kOutOfRange, HasSubstr("drain the job")));
  EXPECT_THAT(Ask(ScaleWorkers{2}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already")));
  job_.view.budget.memory_bytes = 1400 * kMiB;  // 1024 in use, 256 each
  EXPECT_THAT(Ask(ScaleWorkers{4}),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("has room for 3 in all")));
  EXPECT_THAT(Ask(ScaleWorkers{3}), IsOk());
  job_.view.workers_min = 2;
  job_.view.workers_max = 6;
  EXPECT_THAT(Ask(ScaleWorkers{7}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("allows 2 to 6")));
  EXPECT_THAT(Ask(ScaleWorkers{1}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("1 workers")));
}

TEST_F(HumanOrdersTest, AGroupKeepsTheMembersThatItNeeds) {
  job_.view.members_min = 2;
  const auto refused =
      StatusIs(StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("with 1 worker"), HasSubstr("needs 2 members (spec.group.minMem")));
  EXPECT_THAT(Ask(ScaleWorkers{1}), refused);
  EXPECT_THAT(Ask(EndNode{"worker-1"}), refused);
  EXPECT_THAT(Ask(ScaleWorkers{3}), IsOk());
  job_.view.members_min = 3;
  EXPECT_THAT(Ask(ScaleWorkers{1}), IsOk()) << "others join from elsewhere";
}

TEST_F(HumanOrdersTest, PausesAndResumes) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted pause, Ask(SetPaused{"worker-count", true}));
  EXPECT_EQ(pause.event.action, "pause-policy");
  EXPECT_EQ(pause.event.target, "worker-count");
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted resume, Ask(SetPaused{"hang", false}));
  EXPECT_EQ(resume.event.action, "resume-policy");
  EXPECT_THAT(Ask(SetPaused{"hang", true}),
              StatusIs(StatusCode::kFailedPrecondition, "hang is paused already"));
  EXPECT_THAT(Ask(SetPaused{"worker-count", false}),
              StatusIs(StatusCode::kFailedPrecondition, "worker-count is not paused"));
  EXPECT_THAT(Ask(SetPaused{"hangs", true}),
              StatusIs(StatusCode::kNotFound, HasSubstr("there are hang, worker-count")));
  EXPECT_THAT(Ask(SetPaused{"hangs", false}),
              StatusIs(StatusCode::kNotFound, HasSubstr("'hangs'")));
}

TEST_F(HumanOrdersTest, OfTheWholeJob) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted drain, Ask(DrainJob{}, "upgrade"));
  EXPECT_EQ(drain.event.action, "drain");
  EXPECT_EQ(drain.event.target, "job");
  EXPECT_TRUE(IsMasters(drain.order));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted cancel, Ask(CancelJob{}));
  EXPECT_EQ(cancel.event.action, "cancel");
}

TEST_F(HumanOrdersTest, ARetryNamesItsShardsAndTheReason) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted two,
                              Ask(RetryShards{{"0/2/17", "0/2/18"}}, "file fixed"));
  EXPECT_EQ(two.event.because, "file fixed: shards 0/2/17, 0/2/18");
  EXPECT_EQ(FigureOf(two.event, "shards"), 2);
  const std::vector<std::string> many(100, "0/0/1");
  MUSTER_ASSERT_OK_AND_ASSIGN(const Granted all, Ask(RetryShards{many}));
  EXPECT_THAT(all.event.because, HasSubstr(" and 80 more"));
  EXPECT_THAT(Ask(RetryShards{}), StatusIs(StatusCode::kFailedPrecondition, "no shard is FAILED"));
}

TEST_F(HumanOrdersTest, AJobThatDrainsTakesLittleAndOneThatIsOverNothing) {
  const auto all = [&] {
    std::vector<absl::Status> all;
    for (const Order& order :
         std::vector<Order>{RestartNode{.node = "worker-0"}, EndNode{"worker-0"}, ScaleWorkers{3},
                            DrainJob{}, RetryShards{{"0/0/1"}}}) {
      all.push_back(Ask(order).status());
    }
    return all;
  };
  job_.view.activity = Activity::kDraining;
  for (const absl::Status& status : all()) {
    EXPECT_THAT(status, StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is draining")));
  }
  EXPECT_THAT(Ask(CancelJob{}), IsOk());
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 1024 * kMiB}), IsOk());
  job_.view.activity = Activity::kOver;
  for (const absl::Status& status : all()) {
    EXPECT_THAT(status, StatusIs(StatusCode::kFailedPrecondition, "the job is over"));
  }
  EXPECT_THAT(Ask(CancelJob{}), Not(IsOk()));
  EXPECT_THAT(Ask(ResizeNode{.node = "ps-0", .memory_bytes = 1024 * kMiB}), Not(IsOk()));
}

}  // namespace
}  // namespace muster::scaler
