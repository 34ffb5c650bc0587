// Parts that are sent again: when, how often, and what earlier sendings still mean.
#include "tests/worker_sdk/core/part_sender_fixture.h"

namespace muster::sdk {
namespace part_sender_test {

TEST_F(PartSenderTest, WrongOwnerIsSentAgainAtOnceUnderANewMap) {
  PartitionMap map = MapOf(1, 2);
  GiveMap(map);
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  SendRequests requests = sender_.Flush(now_);
  sender_.MapAnswered();
  Answer(requests[0], PartCode::kWrongOwner);
  EXPECT_TRUE(sender_.wants_map());
  EXPECT_THAT(sender_.Flush(now_), IsEmpty());
  map.version = MapVersion(2);
  for (PartitionEntry& entry : map.partitions) {
    if (entry.owner == requests[0].lane.server) entry.epoch = entry.epoch.Next();
  }
  GiveMap(map);
  SendRequests again = sender_.Flush(now_);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].items.size(), requests[0].items.size());
  EXPECT_EQ(again[0].items[0].epoch, requests[0].items[0].epoch.Next());
}

TEST_F(PartSenderTest, RetryAndUnansweredComeAgainAfterABoundedBackoff) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  SendRequests requests = sender_.Flush(now_);
  Answer(requests[1], PartCode::kOk);
  SendRequest request = requests[0];
  for (int i = 0; i < 200; ++i) {  // a server may be away for long
    if (i % 2 == 0) {
      Answer(request, PartCode::kRetry);
    } else {
      sender_.OnUnanswered(request.id, now_);
    }
    EXPECT_THAT(sender_.Flush(now_), IsEmpty());
    ASSERT_TRUE(sender_.NextDue().has_value());
    EXPECT_GE(*sender_.NextDue() - now_, PartSender::kBackoffMin) << i;
    EXPECT_LE(*sender_.NextDue() - now_, PartSender::kBackoffMax * 5 / 4) << i;
    now_ += PartSender::kBackoffMax * 5 / 4;
    SendRequests again = sender_.Flush(now_);
    ASSERT_THAT(again, SizeIs(1)) << i;
    request = again[0];
  }
  EXPECT_TRUE(Answer(request, PartCode::kOk).finished.has_value());
}

TEST_F(PartSenderTest, AnAnswerToAnEarlierSendingOrACancelledDeliveryMeansNothing) {
  PartitionMap map = MapOf(1, 2);
  GiveMap(map);
  DeliveryId id = sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  SendRequests first = sender_.Flush(now_);
  map.version = MapVersion(2);
  for (PartitionEntry& entry : map.partitions) entry.epoch = entry.epoch.Next();
  GiveMap(map);
  SendRequests second = sender_.Flush(now_);
  ASSERT_THAT(second, SizeIs(2));
  Answer(first[0], PartCode::kOk);
  Answer(first[1], PartCode::kOk);
  EXPECT_FALSE(sender_.Finished(id));
  EXPECT_EQ(sender_.outstanding_pushes(), 1u);
  Answer(second[0], PartCode::kOk);
  sender_.Cancel(id);
  EXPECT_EQ(sender_.outstanding_pushes(), 0u);
  EXPECT_EQ(Answer(second[1], PartCode::kOk).finished, std::nullopt);
  EXPECT_THAT(sender_.Flush(now_ + milliseconds(1000)), IsEmpty());
}

TEST_F(PartSenderTest, AnAnswerWithAnotherNumberOfPartsCountsAsNone) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  SendRequest request = sender_.Flush(now_)[0];
  sender_.OnReply(request.id, {}, {}, now_);
  EXPECT_THAT(sender_.Flush(now_ + milliseconds(500)), SizeIs(1));
}

TEST_F(PartSenderTest, WhatIsCalledMalformedAgainAndAgainIsHopeless) {
  PartitionMap map = MapOf(1, 2);
  for (PartitionEntry& entry : map.partitions) entry.owner = ServerId(0);
  GiveMap(map);
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  const auto refused = [&] {
    now_ += PartSender::kBackoffMax * 5 / 4;
    return sender_.OnRefused(sender_.Flush(now_)[0].id, now_);
  };
  for (uint32_t i = 1; i < PartSender::kRefusalsMax; ++i) EXPECT_FALSE(refused()) << i;
  // Another answer in between, and a new map: it is not the frame.
  now_ += PartSender::kBackoffMax * 5 / 4;
  Answer(sender_.Flush(now_)[0], PartCode::kRetry);
  for (uint32_t i = 1; i < PartSender::kRefusalsMax; ++i) EXPECT_FALSE(refused()) << i;
  map.version = MapVersion(2);
  for (PartitionEntry& entry : map.partitions) entry.epoch = entry.epoch.Next();
  GiveMap(map);
  for (uint32_t i = 1; i < PartSender::kRefusalsMax; ++i) EXPECT_FALSE(refused()) << i;
  EXPECT_TRUE(refused());
  EXPECT_FALSE(sender_.OnRefused(RequestId(12345), now_)) << "not known";
}

struct NotOk {
  PartCode code;
  bool wants_map, stale, bad_request;  // of a push
};

TEST_F(PartSenderTest, WhatIsNotOkCountsForNothingAndComesAgain) {
  const NotOk cases[] = {
      {PartCode::kMissing, false, false, false},   {PartCode::kStaleLease, false, true, false},
      {PartCode::kWrongOwner, true, false, false}, {PartCode::kRetry, false, false, false},
      {PartCode::kBadRequest, false, false, true},
  };
  const auto batch = BatchOf([](uint32_t p) { return p == 0; });
  for (const bool push : {true, false}) {
    for (const NotOk& c : cases) {
      SCOPED_TRACE(::testing::Message() << (push ? "push " : "pull ") << static_cast<int>(c.code));
      sender_ = PartSender();
      GiveMap(MapOf(1, 2));
      const DeliveryId id =
          push ? sender_.AddPush(kPush, batch, now_) : sender_.AddPull(batch, now_);
      const PartSender::Outcome outcome = Answer(sender_.Flush(now_)[0], c.code);
      EXPECT_EQ(outcome.finished, std::nullopt);
      EXPECT_THAT(outcome.parts, IsEmpty());
      EXPECT_EQ(outcome.stale.has_value(), push && c.stale);
      EXPECT_EQ(outcome.bad_request, c.bad_request);
      EXPECT_EQ(sender_.wants_map(), c.wants_map);
      EXPECT_EQ(sender_.outstanding_pushes(), push ? 1u : 0u);
      EXPECT_FALSE(sender_.Finished(id));
      EXPECT_THAT(sender_.Flush(now_), IsEmpty());
      now_ += PartSender::kBackoffMax;
      const SendRequests again = sender_.Flush(now_);
      ASSERT_THAT(again, SizeIs(1));
      EXPECT_EQ(Answer(again[0], PartCode::kOk).finished, id);
    }
  }
}

TEST_F(PartSenderTest, TheBackOffDoublesAndANewOwnerBeginsItAnew) {
  PartitionMap map = MapOf(1, 2);
  GiveMap(map);
  sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
  for (uint64_t version = 2; version < 4; ++version) {
    for (const int expected : {5, 10, 20, 40, 80, 160, 200, 200}) {
      const SendRequests requests = sender_.Flush(now_);
      ASSERT_THAT(requests, SizeIs(1));
      Answer(requests[0], PartCode::kRetry);
      ASSERT_TRUE(sender_.NextDue().has_value());
      const auto wait = *sender_.NextDue() - now_;
      EXPECT_GE(wait, milliseconds(expected));
      EXPECT_LT(wait, std::chrono::microseconds(expected * 1'250));
      EXPECT_THAT(sender_.Flush(now_ + wait - std::chrono::nanoseconds(1)), IsEmpty());
      now_ += wait;
    }
    map.version = MapVersion(version);
    map.partitions[0].epoch = OwnerEpoch(version);
    GiveMap(map);
    EXPECT_EQ(sender_.NextDue(), now_);
  }
}

TEST_F(PartSenderTest, EachPartComesWhenItIsDue) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  const SendRequests requests = sender_.Flush(now_);
  Answer(requests[1], PartCode::kRetry);
  now_ += milliseconds(4);
  Answer(requests[0], PartCode::kRetry);
  sender_.AddPull(BatchOf([](uint32_t p) { return p == 0; }), now_ + milliseconds(100));
  now_ += milliseconds(4);
  SendRequests again = sender_.Flush(now_);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].lane, requests[1].lane);
  ASSERT_TRUE(sender_.NextDue().has_value());
  EXPECT_LT(*sender_.NextDue() - now_, milliseconds(4));
  now_ = *sender_.NextDue();
  again = sender_.Flush(now_);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].lane, requests[0].lane);
}

TEST_F(PartSenderTest, WhatHappensToAnEarlierSendingMeansNothing) {
  SendRequests earlier;
  PartitionMap map = MapOf(1, 2);
  GiveMap(map);
  sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
  for (uint64_t version = 2; version < 60; ++version) {
    earlier.push_back(sender_.Flush(now_)[0]);
    map.version = MapVersion(version);
    map.partitions[0].epoch = OwnerEpoch(version);
    GiveMap(map);
  }
  const SendRequest newest = sender_.Flush(now_)[0];
  for (size_t i = 0; i < earlier.size(); ++i) {
    if (i % 2 == 0) {
      EXPECT_FALSE(sender_.OnRefused(earlier[i].id, now_)) << i;
    } else {
      sender_.OnUnanswered(earlier[i].id, now_);
    }
  }
  EXPECT_FALSE(sender_.wants_map());
  EXPECT_THAT(sender_.Flush(now_ + milliseconds(1'000)), IsEmpty());
  EXPECT_TRUE(Answer(newest, PartCode::kOk).finished.has_value());
}

TEST_F(PartSenderTest, ALostConnectionAsksForAMapIfSomethingWasAwaitedOfIt) {
  GiveMap(MapOf(1, 2));
  const DeliveryId cancelled = sender_.AddPull(BatchOfAllPartitions(), now_);
  const DeliveryId push = sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  const SendRequests requests = sender_.Flush(now_);
  ASSERT_THAT(requests, SizeIs(4));
  sender_.Cancel(cancelled);
  sender_.OnUnanswered(requests[0].id, now_);
  Answer(requests[2], PartCode::kOk);
  sender_.OnUnanswered(requests[2].id, now_);
  EXPECT_FALSE(sender_.wants_map());
  EXPECT_FALSE(sender_.Finished(push));
  sender_.OnUnanswered(requests[3].id, now_);
  EXPECT_TRUE(sender_.wants_map()) << "the server may have come back as another process";
}

}  // namespace part_sender_test
}  // namespace muster::sdk
