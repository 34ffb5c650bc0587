#include <gmock/gmock.h>

#include "scaler/decision/decider.h"
#include "tests/scaler/nodes/node_keeper_fixture.h"

/// Decisions together with the keeper that carries them out.
namespace muster::scaler {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DeciderKeeperTest : public KeeperOrdersFixture {
 protected:
  DeciderKeeperTest() {
    Decider::Options options;
    options.policies.crash_loop.ends_max = options_.restarts.crash_loop_exits;
    decider_.emplace(options, [this](rest::Event event) {
      event.id = events_.size() + 1;
      events_.push_back(event);
      return event;
    });
  }
  /// As a sensor would see the nodes.
  JobView View() {
    JobView view{.now = now_, .activity = Activity::kTraining};
    view.machine = {.cpus = 8, .memory_bytes = 16'384 * kMiB};
    view.workers_min = view.workers_max = 2;
    for (const KeptNode& kept : keeper_->nodes()) {
      if (kept.state == KeptNode::State::kFinished) continue;
      const bool runs = kept.state == KeptNode::State::kRunning;
      view.nodes.push_back({.name = kept.name,
                            .role = kept.role,
                            .start = kept.starts,
                            .state = runs               ? NodeState::kRunning
                                     : kept.starts == 0 ? NodeState::kPlanned
                                                        : NodeState::kExited,
                            .limits = kept.limits});
    }
    return view;
  }
  void Decide(const JobView& view) {
    for (const Ordered& ordered : decider_->Step(view)) Step(ordered.order);
  }
  /// A node ends; it is decided about before the master has heard.
  void End(const std::string& node, EndCause cause, ExitStatus exit) {
    deaf_ = true;
    Exit(node, exit);
    JobView view = View();
    const KeptNode kept = Kept(node);
    view.ends = {{.node = node,
                  .role = kept.role,
                  .start = kept.starts,
                  .at = now_,
                  .cause = cause,
                  .exit = ToString(exit),
                  .progressed = kept.progressed,
                  .exits = kept.exits,
                  .memory_peak_bytes = kept.limits.memory_bytes,
                  .memory_limit_bytes = kept.limits.memory_bytes}};
    Decide(view);
    deaf_ = false;
    Step(ExitHeard{node});
    Pass(std::chrono::seconds(60));
  }

  std::optional<Decider> decider_;
  std::vector<rest::Event> events_;
};

TEST_F(DeciderKeeperTest, WhoIsKilledForItsMemoryStartsBiggerAndIsNoCrashLoop) {
  RunToTraining();
  for (const uint64_t mib : {768, 1152, 1728, 2592}) {
    End("worker-0", EndCause::kKernelOutOfMemory, kKilled);
    EXPECT_EQ(limits_["worker-0"].memory_bytes, mib * kMiB);
  }
  EXPECT_EQ(starts_["worker-0"], 5u);
  EXPECT_THAT(Did(), Not(Contains("cancel")));
}

TEST_F(DeciderKeeperTest, APlatformThatKillsAgainAndAgainIsNoCrashLoop) {
  RunToTraining();
  for (int i = 0; i < 5; ++i) End("ps-0", EndCause::kPlatform, kKilled);
  EXPECT_EQ(starts_["ps-0"], 6u);
  EXPECT_THAT(Did(), Not(Contains("cancel")));
}

TEST_F(DeciderKeeperTest, ACrashLoopEndsTheJobWithThePolicysReason) {
  RunToTraining();
  for (int i = 0; i < 3; ++i) End("worker-1", EndCause::kProgram, kCrashed);
  EXPECT_THAT(Did(), Contains("cancel"));
  EXPECT_THAT(cancel_reason_, AllOf(HasSubstr("worker-1 ended with SIGSEGV, 3 times in a row"),
                                    HasSubstr("`muster logs worker-1`")));
  EXPECT_EQ(starts_["worker-1"], 3u);
}

TEST_F(DeciderKeeperTest, AtTheBoundTheJobEndsWithThePolicysReason) {
  RunToTraining();
  deaf_ = true;
  Exit("ps-0", kKilled);
  JobView view = View();
  view.ends = {{.node = "ps-0",
                .role = NodeRole::kServer,
                .start = 1,
                .at = now_,
                .cause = EndCause::kKernelOutOfMemory,
                .memory_limit_bytes = kBig.memory_bytes}};
  view.budget.memory_bytes = kBig.memory_bytes + 2 * kSmall.memory_bytes;
  Decide(view);
  EXPECT_THAT(Did(), ElementsAre("cancel"));
  EXPECT_THAT(cancel_reason_, AllOf(HasSubstr("ps-0 was killed"), HasSubstr("budget")));
}

TEST_F(DeciderKeeperTest, FirstSizesAreThereBeforeTheFirstStart) {
  Begin();
  Decide(View());
  Answer();
  for (const char* node : {"ps-0", "worker-0", "worker-1"}) {
    EXPECT_GT(limits_[node].memory_bytes, 1'024 * kMiB) << node;
  }
}

TEST_F(DeciderKeeperTest, PeoplesOrders) {
  RunToTraining();
  const HumanFacts facts{.limits_remark = "", .policies = {"hang"}, .workers = 2};
  const JobView view = View();
  const auto take = [&](const Order& order) {
    const auto granted = Judge({order, ""}, view, facts);
    ASSERT_TRUE(granted.ok()) << granted.status();
    for (const Ordered& ordered : decider_->Take(*granted, View()).orders) Step(ordered.order);
  };
  take(ScaleWorkers{3});
  EXPECT_THAT(Did(), ElementsAre("start worker-2"));
  take(ResizeNode{.node = "ps-0", .memory_bytes = 1'024 * kMiB});
  EXPECT_THAT(Did(), ElementsAre("limit ps-0 to 1 core, 1 GiB"));
  take(RestartNode{.node = "worker-0"});
  EXPECT_THAT(Did(), ElementsAre("stop worker-0"));
  take(EndNode{"worker-1"});
  EXPECT_THAT(Did(), ElementsAre("drain worker-1"));
  take(SetPaused{"hang"});
  EXPECT_THAT(keeper_->plan().paused, ElementsAre("hang"));
}

}  // namespace
}  // namespace muster::scaler
