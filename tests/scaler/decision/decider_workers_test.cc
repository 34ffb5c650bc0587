#include <gmock/gmock.h>

#include "scaler/decision/decider.h"
#include "tests/scaler/decision/decider_fixture.h"

/// What people order of workers, and what keeps policies from undoing it.
namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(DeciderTest, WorkersThatAreScaledAwayNameTheOrder) {
  Begin();
  const HumanOrders::Facts facts{.workers = 3};
  const auto order = HumanOrders(job_.view, facts).Scale(2, "");
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(std::get<ScaleWorkers>(decider_->Take(*order, job_.view).orders.at(0).order).workers,
            2u);
  restart_ = false;
  job_.End("worker-2", EndCause::kAsked);
  job_.End("worker-1", EndCause::kAsked);
  Second();
  EXPECT_THAT(Told(),
              ElementsAre("action workers set-workers", "exit worker-2 <- 1", "exit worker-1"));
}

TEST_F(DeciderTest, ANumberOfWorkersThatAPersonOrdersHoldsUntilItIsLifted) {
  Begin();
  job_.view.workers_min = 1;
  job_.view.workers_max = 8;
  const HumanOrders::Facts facts{.policies = {"worker-count"}, .workers = 3};
  const auto order = HumanOrders(job_.view, facts).Scale(2, "the others need the machine");
  ASSERT_TRUE(order.ok());
  const Decider::Taken taken = decider_->Take(*order, job_.view);
  EXPECT_EQ(taken.event.action, "set-workers");
  ASSERT_THAT(taken.orders, SizeIs(2));
  // A successor knows, too.
  EXPECT_THAT(std::get<PausePolicies>(taken.orders[0].order).policies, ElementsAre("worker-count"));
  EXPECT_EQ(std::get<ScaleWorkers>(taken.orders[1].order).workers, 2u);
  EXPECT_THAT(Told(),
              ElementsAre("action workers set-workers", "action worker-count pause-policy <- 1"));
  EXPECT_THAT(events_.back().because, HasSubstr("muster policies resume worker-count"));
  EXPECT_THAT(Seconds(600), IsEmpty());
  EXPECT_GT(PolicyNamed("worker-count").refused, 0u) << "it would have changed it";
  const auto resume =
      HumanOrders(job_.view, {.policies = {"worker-count"}, .paused = decider_->paused()})
          .Resume("worker-count", "");
  ASSERT_TRUE(resume.ok());
  decider_->Take(*resume, job_.view);
  EXPECT_FALSE(Seconds(120).empty());
}

TEST_F(DeciderTest, AWorkerThatAPersonSendsAwayIsNotReplaced) {
  Begin();
  job_.view.workers_min = 1;
  job_.view.workers_max = 8;
  const HumanOrders::Facts facts{.policies = {"worker-count"}, .workers = 3};
  const Decider::Taken server =
      decider_->Take(*HumanOrders(job_.view, facts).DrainNode("ps-1", ""), job_.view);
  EXPECT_THAT(server.orders, SizeIs(1)) << "a server that is drained stays";
  const Decider::Taken taken =
      decider_->Take(*HumanOrders(job_.view, facts).DrainNode("worker-1", ""), job_.view);
  ASSERT_THAT(taken.orders, SizeIs(2));
  EXPECT_THAT(std::get<PausePolicies>(taken.orders[0].order).policies, ElementsAre("worker-count"));
  EXPECT_EQ(std::get<EndNode>(taken.orders[1].order).node, "worker-1");
  EXPECT_THAT(Told(), ElementsAre("action ps-1 drain", "action worker-1 drain",
                                  "action worker-count pause-policy <- 2"));
  EXPECT_THAT(events_.back().because, HasSubstr("muster policies resume worker-count"));
  EXPECT_THAT(Seconds(600), IsEmpty());
}

TEST_F(DeciderTest, AWorkerThatTheMasterWasAskedToSendAwayIsNotReplacedEither) {
  Begin();
  EXPECT_THAT(decider_->SentAway("worker-1", job_.view), IsEmpty()) << "the count is fixed";
  job_.view.workers_min = 1;
  job_.view.workers_max = 8;
  const std::vector<Ordered> orders = decider_->SentAway("worker-1", job_.view);
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_THAT(std::get<PausePolicies>(orders[0].order).policies, ElementsAre("worker-count"));
  EXPECT_THAT(Told(), ElementsAre("action worker-count pause-policy"));
  EXPECT_THAT(events_.back().because, HasSubstr("worker-1 was sent away"));
  EXPECT_THAT(decider_->SentAway("worker-2", job_.view), IsEmpty()) << "it is paused already";
  EXPECT_THAT(Seconds(600), IsEmpty());
}

TEST_F(DeciderTest, WhereTheCountIsFixedOrThePolicyPausedAnOrderOfWorkersPausesNothing) {
  Begin();
  const HumanOrders::Facts facts{.workers = 3};
  EXPECT_THAT(decider_->Take(*HumanOrders(job_.view, facts).Scale(2, ""), job_.view).orders,
              SizeIs(1));
  Begin({.paused = {"worker-count"}});
  job_.view.workers_max = 8;
  job_.view.workers_min = 1;
  EXPECT_THAT(decider_->Take(*HumanOrders(job_.view, facts).Scale(2, ""), job_.view).orders,
              SizeIs(1));
}

TEST_F(DeciderTest, APauseHoldsAtOnceAndIsForThePlan) {
  Begin();
  HumanOrders::Facts facts{.policies = {"platform-kill"}};
  const auto pause = HumanOrders(job_.view, facts).Pause("platform-kill", "");
  ASSERT_TRUE(pause.ok());
  const Decider::Taken paused = decider_->Take(*pause, job_.view);
  EXPECT_THAT(std::get<PausePolicies>(paused.orders.at(0).order).policies,
              ElementsAre("platform-kill"));
  EXPECT_EQ(paused.orders[0].taken, std::nullopt);
  job_.End("worker-0", EndCause::kPlatform);
  EXPECT_THAT(Seconds(1), IsEmpty());
  facts.paused = decider_->paused();
  const auto resume = HumanOrders(job_.view, facts).Resume("platform-kill", "");
  ASSERT_TRUE(resume.ok());
  EXPECT_THAT(
      std::get<PausePolicies>(decider_->Take(*resume, job_.view).orders.at(0).order).policies,
      IsEmpty());
  EXPECT_THAT(decider_->paused(), IsEmpty());
  Seconds(200);
  for (const rest::Event& event : events_) {
    EXPECT_FALSE(event.kind == "outcome" && event.cause_id == paused.event.id);
  }
  // Nor does a successor think that one is missing.
  const std::vector<rest::Event> left = events_;
  Begin();
  decider_->Adopt(left, WallTime(0), Wall() + std::chrono::hours(1), job_.view.now);
  for (const rest::Event& event : events_) EXPECT_NE(event.cause_id, paused.event.id);
}

}  // namespace
}  // namespace muster::scaler
