#include "tests/worker_sdk/core/part_sender_fixture.h"

namespace muster::sdk {
namespace part_sender_test {

TEST_F(PartSenderTest, OneRequestPerLaneAndFinishedWhenAllAnswered) {
  GiveMap(MapOf(/*version=*/1, /*restore=*/2));
  DeliveryId id = sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  SendRequests requests = sender_.Flush(now_);
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[0].items.size() + requests[1].items.size(), kPartitions);
  EXPECT_THAT(sender_.Flush(now_), IsEmpty());
  EXPECT_EQ(sender_.NextDue(), std::nullopt);
  EXPECT_EQ(Answer(requests[0], PartCode::kOk).finished, std::nullopt);
  EXPECT_EQ(sender_.outstanding_pushes(), 1u);
  EXPECT_EQ(sender_.outstanding_push_floats(), BatchOfAllPartitions()->plan.value_count);
  EXPECT_EQ(Answer(requests[1], PartCode::kOk).finished, id);
  EXPECT_EQ(sender_.outstanding_pushes(), 0u);
  EXPECT_EQ(sender_.outstanding_push_floats(), 0u);
  EXPECT_FALSE(sender_.Finished(id)) << "it is forgotten";
}

TEST_F(PartSenderTest, QuestionsAreNoOutstandingPushes) {
  GiveMap(MapOf(1, 2));
  auto question = std::make_shared<RowBatch>();
  question->plan.parts = {{.partition = PartitionId(0)}, {.partition = PartitionId(1)}};
  sender_.Cancel(sender_.AddPush(kPush, question, now_));
  const DeliveryId asked = sender_.AddPush(kPush, question, now_);
  sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
  EXPECT_EQ(sender_.outstanding_pushes(), 1u) << "a trainer must not wait for answers";
  SendRequests requests = sender_.Flush(now_);
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
  EXPECT_EQ(sender_.NextDue(), now_ + PartSender::kBackoffMax);
  GiveMap(MapOf(2, 2));
  EXPECT_THAT(sender_.Flush(now_), SizeIs(2));
}

TEST_F(PartSenderTest, PullGoesWithAnyMap) {
  GiveMap(MapOf(1, 0));
  sender_.AddPull(BatchOfAllPartitions(), now_);
  EXPECT_THAT(sender_.Flush(now_), SizeIs(2));
}

TEST_F(PartSenderTest, StaleLeaseNamesTheToken) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  EXPECT_EQ(Answer(sender_.Flush(now_)[0], PartCode::kStaleLease).stale, kPush.token);
}

TEST_F(PartSenderTest, PulledRowsAreWhereTheirKeysAppearFirst) {
  GiveMap(MapOf(1, 0));
  std::shared_ptr<const RowBatch> batch = BatchOfAllPartitions();
  DeliveryId id = sender_.AddPull(batch, now_);
  SendRequests requests = sender_.Flush(now_);
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
      sender_.OnReply(request.id, replies, ReceivedRows(block), now_);
    }
    now_ += milliseconds(500);
    requests = sender_.Flush(now_);
  }
  ASSERT_TRUE(sender_.Finished(id));
  sender_.TakePull(id);
  const RowOutput& output = batch->outputs[0];
  for (size_t part = 0; part < kPartitions; ++part) {
    const PlanPart& range = batch->plan.parts[part];
    for (uint64_t k = range.key_begin; k < range.key_begin + range.key_count; ++k) {
      const size_t row = batch->plan.ids[k];
      EXPECT_EQ(output.keys->unique[row], batch->plan.keys[k]);
      EXPECT_EQ(output.rows[2 * row], expected[part]);
      EXPECT_EQ(output.rows[2 * row + 1], expected[part]);
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
  large.plan.value_count = PartSender::kRequestFloatsMax * kPartitions;
  sender_.AddPush(kPush, std::make_shared<const RowBatch>(large), now_);
  SendRequests requests = sender_.Flush(now_);
  EXPECT_THAT(requests, SizeIs(1 + kPartitions / 2));
  for (const SendRequest& request : requests) EXPECT_LE(request.items.size(), 2u);
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
  SendRequests pushes = sender_.Flush(now_);
  sender_.AddPull(BatchOfAllPartitions(), now_);
  now_ += milliseconds(1);
  SendRequests pulls = sender_.Flush(now_);
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
  const SendRequests late = sender_.Flush(now_);
  for (PartitionEntry& entry : map.partitions) {
    if (entry.owner == ServerId(0)) entry.owner_incarnation = ServerIncarnation(4);
  }
  GiveMap(map);
  now_ += milliseconds(3);
  for (const SendRequest& request : sender_.Flush(now_)) Answer(request, PartCode::kOk);
  Answer(late[0], PartCode::kOk);
  EXPECT_EQ(sender_.Peers(std::nullopt, 1)[0], peer(0, 4, 1, 0, 0, 0));
}

TEST_F(PartSenderTest, RequestsOfOneDeliveryTakeTheirTurnsAtALane) {
  GiveMap(MapOf(1, 2));
  RowBatch large = *BatchOf([](uint32_t p) { return p == 0 || p == 2; });
  for (PlanPart& part : large.plan.parts) part.value_count = PartSender::kRequestFloatsMax;
  sender_.AddPull(std::make_shared<const RowBatch>(large), now_);
  const SendRequests requests = sender_.Flush(now_);
  ASSERT_THAT(requests, SizeIs(2));
  for (const SendRequest& request : requests) {
    now_ += milliseconds(4);
    Answer(request, PartCode::kOk);
  }
  ASSERT_THAT(sender_.Peers(std::nullopt, 9), SizeIs(1));
  EXPECT_EQ(sender_.Peers(std::nullopt, 9)[0].pull_us, 8'000u) << "the second one waited for 4 ms";
}

TEST_F(PartSenderTest, TheOldestDeliveriesLeaveFirst) {
  GiveMap(MapOf(1, 2));
  const auto batch = BatchOf([](uint32_t p) { return p == 0; });
  constexpr size_t kDeliveries = 100;
  std::vector<DeliveryId> added, finished;
  for (size_t i = 0; i < kDeliveries; ++i) added.push_back(sender_.AddPush(kPush, batch, now_));
  for (const SendRequest& request : sender_.Flush(now_)) {
    finished.push_back(Answer(request, PartCode::kOk).finished.value_or(DeliveryId()));
  }
  EXPECT_EQ(finished, added);
}

TEST_F(PartSenderTest, APartWhoseServerIsNotKnownWaitsForAMap) {
  PartitionMap no_server = MapOf(1, 2), no_lane = no_server, no_partition = no_server;
  no_server.servers.erase(no_server.servers.begin());
  no_lane.servers[0].lanes.clear();
  no_partition.partitions.clear();
  for (const PartitionMap& map : {no_server, no_lane, no_partition}) {
    sender_ = PartSender();
    EXPECT_TRUE(sender_.wants_map()) << "it has none";
    GiveMap(map);
    EXPECT_FALSE(sender_.wants_map());
    sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
    for (int round = 0; round < 3; ++round) {
      sender_.MapAnswered();
      EXPECT_THAT(sender_.Flush(now_), IsEmpty());
      EXPECT_TRUE(sender_.wants_map());
      ASSERT_TRUE(sender_.NextDue().has_value());
      EXPECT_GT(*sender_.NextDue(), now_);
      now_ = *sender_.NextDue();
    }
    GiveMap(MapOf(2, 2));
    EXPECT_THAT(sender_.Flush(now_), SizeIs(1));
  }
  no_server.version = MapVersion(3);
  GiveMap(no_server);  // what an earlier map said of it counts no more
  EXPECT_THAT(sender_.Flush(now_), IsEmpty());
  EXPECT_TRUE(sender_.wants_map());
}

TEST_F(PartSenderTest, AnOlderMapIsNotTaken) {
  GiveMap(MapOf(3, 2));
  PartitionMap older = MapOf(2, 2);
  for (PartitionEntry& entry : older.partitions) entry.epoch = OwnerEpoch(9);
  GiveMap(older);
  older.version = MapVersion(3);
  GiveMap(older);
  sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
  EXPECT_EQ(sender_.Flush(now_)[0].items[0].epoch, OwnerEpoch(1));
}

TEST_F(PartSenderTest, AMapThatLeavesTheOwnerAloneSendsNothingAgain) {
  GiveMap(MapOf(1, 2));
  sender_.AddPush(kPush, BatchOfAllPartitions(), now_);
  const SendRequests requests = sender_.Flush(now_);
  PartitionMap map = MapOf(2, 2);
  map.partitions[3].epoch = OwnerEpoch(2);
  GiveMap(map);
  const SendRequests again = sender_.Flush(now_);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_THAT(again[0].items, SizeIs(1));
  Answer(requests[0], PartCode::kOk);
  Answer(requests[1], PartCode::kOk);  // but for partition 3
  EXPECT_EQ(sender_.outstanding_pushes(), 1u);
  EXPECT_TRUE(Answer(again[0], PartCode::kOk).finished.has_value());
}

TEST_F(PartSenderTest, ARequestIsFullAtItsLimit) {
  struct Case {
    uint64_t keys, floats;  // of each of two parts
    size_t requests;
  };
  constexpr uint64_t kKeys = PartSender::kRequestKeysMax, kFloats = PartSender::kRequestFloatsMax;
  const Case cases[] = {
      {kKeys / 2, 1, 1}, {kKeys / 2 + 1, 1, 2}, {1, kFloats / 2, 1}, {1, kFloats / 2 + 1, 2}};
  GiveMap(MapOf(1, 2));
  RowBatch batch = *BatchOf([](uint32_t p) { return p == 0 || p == 2; });
  batch.plan.value_count = PartSender::kRequestsOfDelivery * kFloats;
  for (const Case& c : cases) {
    for (PlanPart& part : batch.plan.parts) {
      part.key_count = c.keys;
      part.value_count = c.floats;
    }
    sender_.AddPush(kPush, std::make_shared<const RowBatch>(batch), now_);
    const SendRequests requests = sender_.Flush(now_);
    ASSERT_THAT(requests, SizeIs(c.requests));
    EXPECT_EQ(requests[0].keys, 2 * c.keys / c.requests);
    EXPECT_EQ(requests[0].floats, 2 * c.floats / c.requests);
  }
}

TEST_F(PartSenderTest, ADeliveryOfSomeSizeIsCutSoThatItsRequestsOverlap) {
  PartitionMap map = MapOf(1, 2);
  for (PartitionEntry& entry : map.partitions) entry.owner = ServerId(0);
  GiveMap(map);
  RowBatch batch = *BatchOfAllPartitions();
  const auto requests_of = [&](uint64_t floats_each) {
    for (PlanPart& part : batch.plan.parts) part.value_count = floats_each;
    batch.plan.value_count = floats_each * batch.plan.parts.size();
    sender_.AddPush(kPush, std::make_shared<const RowBatch>(batch), now_);
    return sender_.Flush(now_).size();
  };
  EXPECT_EQ(requests_of(PartSender::kRequestFloatsMin / kPartitions), 1u);
  EXPECT_EQ(requests_of(PartSender::kRequestFloatsMin / 2), PartSender::kRequestsOfDelivery);
}

TEST_F(PartSenderTest, NeitherAQuestionNorASecondAnswerIsARoundTrip) {
  GiveMap(MapOf(1, 2));
  auto question = std::make_shared<RowBatch>();
  question->plan.parts = {{.partition = PartitionId(0)}};
  sender_.AddPush(kPush, question, now_);
  Answer(sender_.Flush(now_)[0], PartCode::kOk);
  EXPECT_THAT(sender_.Peers(std::nullopt, 9), IsEmpty()) << "it costs the server nothing";
  sender_.AddPush(kPush, BatchOf([](uint32_t p) { return p == 0; }), now_);
  const SendRequest push = sender_.Flush(now_)[0];
  Answer(push, PartCode::kOk);
  Answer(push, PartCode::kOk);
  ASSERT_THAT(sender_.Peers(std::nullopt, 9), SizeIs(1));
  EXPECT_EQ(sender_.Peers(std::nullopt, 9)[0].pushes, 1u);
}

}  // namespace part_sender_test
}  // namespace muster::sdk
