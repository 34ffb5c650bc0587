#include "kafka/producer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kafka/mock_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::kafka {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ProducerTest, WhatTheBrokersDoNotTakeIsSaid) {
  MockCluster cluster;
  cluster.CreateTopic("t", 1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto producer, Producer::Open(cluster.config()));
  ASSERT_THAT(
      producer->Send({.topic = "t", .value = "a", .key = {}, .headers = {}, .partition = 0}),
      IsOk());
  EXPECT_THAT(producer->Flush(std::chrono::seconds(30)), IsOk());
  rd_kafka_mock_push_request_errors(cluster.get(), /*Produce*/ 0, 1,
                                    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  ASSERT_THAT(
      producer->Send({.topic = "t", .value = "b", .key = {}, .headers = {}, .partition = 0}),
      IsOk());
  EXPECT_THAT(producer->Flush(std::chrono::seconds(30)),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("topic 't'")));
}

TEST(ProducerTest, BrokersThatAreAwayAreNotWaitedForForEver) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto producer, Producer::Open({{"127.0.0.1:1"}, {}, {}}));
  ASSERT_THAT(
      producer->Send({.topic = "t", .value = "a", .key = {}, .headers = {}, .partition = {}}),
      IsOk());
  EXPECT_THAT(producer->Flush(std::chrono::milliseconds(300)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("1 records")));
}

}  // namespace
}  // namespace muster::kafka
