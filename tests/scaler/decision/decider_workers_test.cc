#include <gmock/gmock.h>

#include "scaler/decision/decider.h"
#include "tests/scaler/decision/decider_fixture.h"

/// People's orders about workers, and the rules that keep policies from undoing them.
namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The policy that the first order pauses.
std::string Pauses(const std::vector<Ordered>& orders) {
  const auto& order = std::get<SetPaused>(orders.at(0).order);
  return order.paused ? order.policy : "none";
}

TEST_F(DeciderTest, WorkersThatAreScaledAwayNameTheOrder) {
  Begin();
  const Decider::Taken taken = Take(ScaleWorkers{2}, {.workers = 3});
  EXPECT_EQ(std::get<ScaleWorkers>(taken.orders.at(0).order).workers, 2u);
  restart_ = false;
  job_.End("worker-2", EndCause::kAsked);
  job_.End("worker-1", EndCause::kAsked);
  Second();
  EXPECT_THAT(Told(), ElementsAre("action workers scale", "exit worker-2 <- 1", "exit worker-1"));
}

TEST_F(DeciderTest, ANumberOfWorkersThatAPersonOrdersHoldsUntilItIsLifted) {
  Begin();
  job_.view.workers_min = 1;
  job_.view.workers_max = 8;
  const Decider::Taken taken =
      Take(ScaleWorkers{2}, {.policies = {"worker-count"}, .workers = 3}, "the others need it");
  EXPECT_EQ(taken.event.action, "scale");
  ASSERT_THAT(taken.orders, SizeIs(2));
  // A successor knows, too.
  EXPECT_EQ(Pauses(taken.orders), "worker-count");
  EXPECT_EQ(std::get<ScaleWorkers>(taken.orders[1].order).workers, 2u);
  EXPECT_THAT(Told(), ElementsAre("action workers scale", "action worker-count pause-policy <- 1"));
  EXPECT_THAT(events_.back().because, HasSubstr("muster policies resume worker-count"));
  EXPECT_THAT(Seconds(600), IsEmpty());
  EXPECT_GT(PolicyNamed("worker-count").refused, 0u) << "it would have changed it";
  Take(SetPaused{"worker-count", false},
       {.policies = {"worker-count"}, .paused = decider_->paused()});
  EXPECT_FALSE(Seconds(120).empty());
}

TEST_F(DeciderTest, AWorkerThatAPersonSendsAwayIsNotReplaced) {
  Begin();
  job_.view.workers_min = 1;
  job_.view.workers_max = 8;
  const HumanFacts facts{.policies = {"worker-count"}, .workers = 3};
  const Decider::Taken server = Take(EndNode{"ps-1"}, facts);
  EXPECT_THAT(server.orders, SizeIs(1)) << "a server that is drained stays";
  const Decider::Taken taken = Take(EndNode{"worker-1"}, facts);
  ASSERT_THAT(taken.orders, SizeIs(2));
  EXPECT_EQ(Pauses(taken.orders), "worker-count");
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
  EXPECT_EQ(Pauses(orders), "worker-count");
  EXPECT_THAT(Told(), ElementsAre("action worker-count pause-policy"));
  EXPECT_THAT(events_.back().because, HasSubstr("sent worker-1 away"));
  EXPECT_THAT(decider_->SentAway("worker-2", job_.view), IsEmpty()) << "it is paused already";
  EXPECT_THAT(Seconds(600), IsEmpty());
}

TEST_F(DeciderTest, WhereTheCountIsFixedOrThePolicyPausedAnOrderOfWorkersPausesNothing) {
  Begin();
  EXPECT_THAT(Take(ScaleWorkers{2}, {.workers = 3}).orders, SizeIs(1));
  Decider::Options with_pause;
  with_pause.paused = {"worker-count"};
  Begin(with_pause);
  job_.view.workers_max = 8;
  job_.view.workers_min = 1;
  EXPECT_THAT(Take(ScaleWorkers{2}, {.workers = 3}).orders, SizeIs(1));
}

TEST_F(DeciderTest, APauseHoldsAtOnceAndIsForThePlan) {
  Begin();
  HumanFacts facts{.policies = {"platform-kill"}};
  const Decider::Taken paused = Take(SetPaused{"platform-kill", true}, facts);
  EXPECT_EQ(Pauses(paused.orders), "platform-kill");
  EXPECT_EQ(paused.orders[0].taken, std::nullopt);
  job_.End("worker-0", EndCause::kPlatform);
  EXPECT_THAT(Seconds(1), IsEmpty());
  facts.paused = decider_->paused();
  const Decider::Taken resumed = Take(SetPaused{"platform-kill", false}, facts);
  EXPECT_FALSE(std::get<SetPaused>(resumed.orders.at(0).order).paused);
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

TEST_F(DeciderTest, TheNewestChangeOfWorkersIsKnownToASuccessor) {
  Begin();
  EXPECT_EQ(decider_->adopted_scale(), std::nullopt);
  const auto scale = [this](const char* kind, const char* policy, double before, double after) {
    return rest::Event{.id = 1,
                       .wall_us = static_cast<uint64_t>(Wall().count()) - 7'000'000,
                       .kind = kind,
                       .policy = policy,
                       .target = "workers",
                       .action = "scale",
                       .before = {{"workers", before}},
                       .after = {{"workers", after}}};
  };
  decider_->Adopt({scale("action", "", 1, 5), scale("decision", "no-room", 5, 3),
                   scale("note", "worker-count", 3, 9), scale("outcome", "no-room", 3, 8)},
                  WallTime(0), Wall(), job_.view.now);
  const std::optional<ActionTaken>& taken = decider_->adopted_scale();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->policy, "no-room");
  EXPECT_EQ(taken->workers_before, 5u);
  EXPECT_EQ(taken->workers_after, 3u);
  EXPECT_EQ(taken->at, job_.view.now - std::chrono::seconds(7));
}

}  // namespace
}  // namespace muster::scaler
