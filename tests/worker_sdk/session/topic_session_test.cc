#include <gmock/gmock.h>

#include <thread>

#include "tests/kafka/mock_cluster.h"
#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

/// A session over the offsets [2, 6) of a topic with the records "0", "1" and so on.
class TopicSessionTest : public SessionTest {
 protected:
  TopicSessionTest() {
    brokers_.CreateTopic("clicks", 1);
    brokers_.CreateTopic("dead", 1);
    brokers_.Produce("clicks", 0, 8, 0, "");
    master_.Reply([this](v1::HelloResponse* hello) {
      v1::TopicSource* source = hello->add_topics();
      source->set_dataset("topic");
      for (const std::string& broker : brokers_.config().brokers) source->add_brokers(broker);
      source->set_group("muster.test");
      source->set_record_bytes_max(1'000);
      source->set_dead_letter_topic("dead");
    });
    master_.AddRange("clicks", {TopicPartition(0), 2, 6}, 2);
    master_.EndWhenDone();
  }

  kafka::MockCluster brokers_;
};

TEST_F(TopicSessionTest, RecordsHaveAllThatTheTopicHas) {
  Session session = Connect();
  Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  uint64_t offset = 2;
  for (Minibatch& batch : shard->Minibatches()) {
    ASSERT_EQ(batch.records().size(), 2u);
    for (size_t i = 0; i < 2; ++i, ++offset) {
      const std::string number = std::to_string(offset);
      EXPECT_EQ(batch.records()[i], number);
      const TopicRecord record = batch.topic_record(i);
      EXPECT_EQ(record.key, "k" + number);
      EXPECT_FALSE(record.tombstone);
      EXPECT_GT(record.timestamp_ms, 0);
      EXPECT_EQ(record.partition, 0u);
      EXPECT_EQ(record.offset, offset);
      const std::vector<TopicHeader> headers = batch.topic_headers(i);
      ASSERT_EQ(headers.size(), 1u);
      EXPECT_EQ(headers[0].name, "n");
      EXPECT_EQ(headers[0].value, number);
    }
    PushOnes(table, batch);
    batch.Commit();
  }
  EXPECT_EQ(offset, 6u);
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  // Their delays since their timestamps were reported.
  ASSERT_EQ(master_.delays.size(), 1u);
  EXPECT_EQ(master_.delays[0].delays.count(), 4u);
}

TEST_F(TopicSessionTest, ARecordAfterTheLastOneIsAnErrorOfTheProgram) {
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  for (Minibatch& batch : shard->Minibatches()) EXPECT_EQ(batch.topic_record(2).offset, 0u);
  EXPECT_THAT(session.status().message(),
              HasSubstr("topic_record of record 2 of a minibatch of 2"));
}

TEST_F(TopicSessionTest, WhatIsRejectedIsADeadLetterBeforeItsShardIsDone) {
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  for (Minibatch& batch : shard->Minibatches()) {
    if (batch.topic_record(0).offset == 4) batch.Reject(1, "odd");
  }
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  ASSERT_EQ(master_.done.size(), 1u);
  EXPECT_EQ(master_.done[0].metrics.rejected_records, 1u);
  EXPECT_THAT(master_.done[0].metrics.reject_samples, ElementsAre("clicks[0]@5: odd"));
  auto reader = kafka::RangeReader::Open(brokers_.config());
  ASSERT_TRUE(reader.ok());
  auto records = (*reader)->Read({"dead", 0, 0, 1}, [](std::string_view) { return true; });
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ((*records)->all()[0].value, "5");
  EXPECT_EQ((*records)->all()[0].key, "k5");
}

TEST_F(TopicSessionTest, AReadThatEndsBecauseTheWorkerLeavesHandsItsShardBack) {
  // Nobody has written the last of these offsets.
  master_.AddRange("clicks", {TopicPartition(0), 6, 20}, 2);
  Session session = Connect();
  std::optional<Shard> first = session.NextShard();
  ASSERT_TRUE(first.has_value()) << session.status().message();
  for ([[maybe_unused]] Minibatch& batch : first->Minibatches()) {
  }
  std::thread leave([&] {
    // It is being read.
    master_.WaitFor(
        [&] { return ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->computing.size() == 1; });
    session.Leave();
  });
  EXPECT_FALSE(session.NextShard().has_value());
  leave.join();
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->computing.empty());
  EXPECT_EQ(session.Finish(), 0);
  ASSERT_EQ(master_.returned.size(), 1u);
  EXPECT_FALSE(master_.returned[0].failed);
}

TEST_F(TopicSessionTest, ADeadLetterThatTheTopicNeverTakesFailsTheShard) {
  brokers_.FailWrites(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 2);
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  for (Minibatch& batch : shard->Minibatches()) {
    if (batch.topic_record(0).offset == 4) batch.Reject(1, "odd");
  }
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_THAT(master_.returned[0].reason,
              HasSubstr("could not be written to the dead-letter topic"));
  EXPECT_THAT(master_.done, ::testing::IsEmpty());
}

}  // namespace
}  // namespace muster
