#include "worker_sdk/core/part_sender.h"

#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::PartCode;

const PushIdentity kPush{{DatasetId(0), EpochIndex(0), ShardIndex(3)},
                         MinibatchIndex(1),
                         LeaseToken::FromValue(77),
                         RunNumber(0),
                         5,
                         RestoreEpoch(2)};

class PartSenderTest : public ::testing::Test {
 protected:
  void GiveMap(const PartitionMap& map) {
    sender_.SetMap(std::make_shared<const PartitionMap>(map), now_);
  }
  PartSender::Outcome Answer(const SendRequest& request, PartCode code) {
    std::vector<wire::PartReply> replies;
    for (const auto& item : request.items) {
      replies.push_back({request.batch->plan.parts[item.part].partition.value(), code, false});
    }
    std::shared_ptr<const float[]> rows;
    if (!request.push) rows = std::make_shared<float[]>(request.floats);
    return sender_.OnReply(request.id, replies, std::move(rows), now_);
  }
  PartSender sender_;
  TimePoint now_{std::chrono::seconds(100)};
};

TEST_F(PartSenderTest, OneRequestPerLaneAndFinishedWhenAllAnswered) {
  GiveMap(MapOf(/*version=*/1, /*restore=*/2));
  DeliveryId id = sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  std::vector<SendRequest> requests = sender_.Flush(now_);
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[0].items.size() + requests[1].items.size(), kPartitions);
  EXPECT_THAT(sender_.Flush(now_), IsEmpty());
  EXPECT_EQ(sender_.NextDue(), std::nullopt);
  EXPECT_EQ(Answer(requests[0], PartCode::kOk).finished, std::nullopt);
  EXPECT_EQ(sender_.outstanding_pushes(), 1u);
  EXPECT_EQ(Answer(requests[1], PartCode::kOk).finished, id);
  EXPECT_EQ(sender_.outstanding_pushes(), 0u);
}

TEST_F(PartSenderTest, QuestionsAreNoOutstandingPushes) {
  GiveMap(MapOf(1, 2));
  auto question = std::make_shared<RowBatch>();
  question->plan.parts = {{.partition = PartitionId(0)}, {.partition = PartitionId(1)}};
  sender_.Cancel(sender_.AddPush(kPush, question, now_));
  const DeliveryId asked = sender_.AddPush(kPush, question, now_);
  sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
  EXPECT_EQ(sender_.outstanding_pushes(), 1u) << "a trainer must not wait for answers";
  std::vector<SendRequest> requests = sender_.Flush(now_);
  ASSERT_THAT(requests, SizeIs(3));
  Answer(requests[0], PartCode::kMissing);
  EXPECT_EQ(Answer(requests[1], PartCode::kOk).finished, asked);
  EXPECT_EQ(sender_.outstanding_pushes(), 1u);
  Answer(requests[2], PartCode::kOk);
  EXPECT_EQ(sender_.outstanding_pushes(), 0u);
}

TEST_F(PartSenderTest, PushWaitsForAMapAsNewAsItsLease) {
  GiveMap(MapOf(1, 1));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  sender_.MapAnswered();
  EXPECT_THAT(sender_.Flush(now_), IsEmpty());
  EXPECT_TRUE(sender_.wants_map());
  GiveMap(MapOf(2, 2));
  EXPECT_THAT(sender_.Flush(now_), SizeIs(2));
}

TEST_F(PartSenderTest, PullGoesWithAnyMap) {
  GiveMap(MapOf(1, 0));
  sender_.AddPull(BatchOfAllPartitions(), now_);
  EXPECT_THAT(sender_.Flush(now_), SizeIs(2));
}

TEST_F(PartSenderTest, WrongOwnerIsSentAgainAtOnceUnderANewMap) {
  PartitionMap map = MapOf(1, 2);
  GiveMap(map);
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  std::vector<SendRequest> requests = sender_.Flush(now_);
  sender_.MapAnswered();
  Answer(requests[0], PartCode::kWrongOwner);
  EXPECT_TRUE(sender_.wants_map());
  EXPECT_THAT(sender_.Flush(now_), IsEmpty());
  map.version = MapVersion(2);
  for (PartitionEntry& entry : map.partitions) {
    if (entry.owner == requests[0].lane.server) entry.epoch = entry.epoch.Next();
  }
  GiveMap(map);
  std::vector<SendRequest> again = sender_.Flush(now_);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].items.size(), requests[0].items.size());
  EXPECT_EQ(again[0].items[0].epoch, requests[0].items[0].epoch.Next());
}

TEST_F(PartSenderTest, RetryAndUnansweredComeAgainAfterABoundedBackoff) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  std::vector<SendRequest> requests = sender_.Flush(now_);
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
    std::vector<SendRequest> again = sender_.Flush(now_);
    ASSERT_THAT(again, SizeIs(1)) << i;
    request = again[0];
  }
  EXPECT_TRUE(Answer(request, PartCode::kOk).finished.has_value());
}

TEST_F(PartSenderTest, AnAnswerToAnEarlierSendingOrACancelledDeliveryMeansNothing) {
  PartitionMap map = MapOf(1, 2);
  GiveMap(map);
  DeliveryId id = sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  std::vector<SendRequest> first = sender_.Flush(now_);
  map.version = MapVersion(2);
  for (PartitionEntry& entry : map.partitions) entry.epoch = entry.epoch.Next();
  GiveMap(map);
  std::vector<SendRequest> second = sender_.Flush(now_);
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

TEST_F(PartSenderTest, StaleLeaseNamesTheToken) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  EXPECT_EQ(Answer(sender_.Flush(now_)[0], PartCode::kStaleLease).stale, kPush.token);
}

TEST_F(PartSenderTest, PulledRowsAreFoundWhereTheirPartsLie) {
  GiveMap(MapOf(1, 0));
  std::shared_ptr<const RowBatch> batch = BatchOfAllPartitions();
  DeliveryId id = sender_.AddPull(batch, now_);
  std::vector<SendRequest> requests = sender_.Flush(now_);
  float next = 1;
  std::vector<float> expected(kPartitions);
  // The first answer refuses its first part, so that later rows move up in the block.
  for (int round = 0; !requests.empty() && round < 5; ++round) {
    for (const SendRequest& request : requests) {
      std::vector<wire::PartReply> replies;
      std::vector<float> rows;
      for (size_t i = 0; i < request.items.size(); ++i) {
        bool refuse = round == 0 && i == 0;
        replies.push_back({0, refuse ? PartCode::kRetry : PartCode::kOk, false});
        if (refuse) continue;
        expected[request.items[i].part] = next;
        rows.insert(rows.end(), batch->plan.parts[request.items[i].part].value_count, next++);
      }
      std::shared_ptr<float[]> block(new float[rows.size() + 1]);
      std::copy(rows.begin(), rows.end(), block.get());
      sender_.OnReply(request.id, replies, block, now_);
    }
    now_ += milliseconds(500);
    requests = sender_.Flush(now_);
  }
  ASSERT_TRUE(sender_.Finished(id));
  PullRows rows = sender_.TakePull(id);
  for (size_t part = 0; part < kPartitions; ++part) {
    const PlanPart& range = batch->plan.parts[part];
    for (uint64_t i = 0; i < range.value_count; ++i) {
      EXPECT_EQ(rows.part_rows[part][i], expected[part]);
    }
  }
  EXPECT_FALSE(sender_.Finished(id));
}

TEST_F(PartSenderTest, LargeBatchesLeaveInSeveralRequests) {
  PartitionMap map = MapOf(1, 2);
  for (PartitionEntry& entry : map.partitions) entry.owner = ServerId(0);
  GiveMap(map);
  RowBatch large = *BatchOfAllPartitions();
  for (PlanPart& part : large.plan.parts) part.value_count = PartSender::kRequestFloatsMax / 2;
  large.plan.parts[0].value_count = PartSender::kRequestFloatsMax * 2;  // alone, but sent
  sender_.AddPush(kPush, std::make_shared<const RowBatch>(large), now_);
  std::vector<SendRequest> requests = sender_.Flush(now_);
  EXPECT_THAT(requests, SizeIs(1 + kPartitions / 2));
  for (const SendRequest& request : requests) EXPECT_LE(request.items.size(), 2u);
}

TEST_F(PartSenderTest, AnAnswerWithAnotherNumberOfPartsCountsAsNone) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  SendRequest request = sender_.Flush(now_)[0];
  sender_.OnReply(request.id, {}, nullptr, now_);
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

TEST_F(PartSenderTest, RoundTripsAreCountedPerServerProcess) {
  const auto peer = [](uint32_t server, uint64_t incarnation, uint64_t pulls, uint64_t pull_us,
                       uint64_t pushes, uint64_t push_us) {
    return PeerTimes{ServerId(server), ServerIncarnation(incarnation), pulls, pull_us, pushes,
                     push_us};
  };
  GiveMap(MapOf(1, 2));
  EXPECT_THAT(sender_.Peers(std::nullopt, 9), IsEmpty());
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  std::vector<SendRequest> pushes = sender_.Flush(now_);
  sender_.AddPull(BatchOfAllPartitions(), now_);
  now_ += milliseconds(1);
  std::vector<SendRequest> pulls = sender_.Flush(now_);
  now_ += milliseconds(4);
  Answer(pushes[0], PartCode::kOk);
  Answer(pulls[0], PartCode::kOk);
  now_ += milliseconds(10);
  Answer(pushes[1], PartCode::kRetry);
  EXPECT_THAT(sender_.Peers(std::nullopt, 9), ElementsAre(peer(0, 1, 1, 4'000, 1, 5'000)))
      << "a refusal is no answer";
  sender_.OnUnanswered(pulls[1].id, now_);
  now_ += milliseconds(500);
  for (const SendRequest& request : sender_.Flush(now_)) {
    now_ += milliseconds(2);
    Answer(request, PartCode::kOk);
  }
  EXPECT_THAT(sender_.Peers(std::nullopt, 9),
              ElementsAre(peer(0, 1, 1, 4'000, 1, 5'000), peer(1, 1, 1, 4'000, 1, 2'000)))
      << "counted from when it was sent again";
  EXPECT_THAT(sender_.Peers(ServerId(0), 1), ElementsAre(peer(1, 1, 1, 4'000, 1, 2'000)));
  EXPECT_THAT(sender_.Peers(ServerId(1), 1), ElementsAre(peer(0, 1, 1, 4'000, 1, 5'000)));
  // Another process in the place of ps-0; an answer of the former one comes late.
  PartitionMap map = MapOf(2, 2);
  sender_.AddPull(BatchOfAllPartitions(), now_);
  const std::vector<SendRequest> late = sender_.Flush(now_);
  for (PartitionEntry& entry : map.partitions) {
    if (entry.owner == ServerId(0)) entry.owner_incarnation = ServerIncarnation(4);
  }
  GiveMap(map);
  now_ += milliseconds(3);
  for (const SendRequest& request : sender_.Flush(now_)) Answer(request, PartCode::kOk);
  Answer(late[0], PartCode::kOk);
  EXPECT_EQ(sender_.Peers(std::nullopt, 1)[0], peer(0, 4, 1, 0, 0, 0));
}

}  // namespace
}  // namespace muster::sdk
