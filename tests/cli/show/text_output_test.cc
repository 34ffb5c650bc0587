#include "cli/show/text_output.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextOutputTest, TableIsAligned) {
  EXPECT_EQ(FormatTable({{"A", "LONG"}, {"wide cell", "x"}}), "A          LONG\nwide cell  x\n");
  EXPECT_EQ(FormatTable({}), "");
}

TEST(TextOutputTest, WhatIsNotKnownOfATopicIsNotZero) {
  v1::JobStatus status;
  v1::StreamStatus* stream = status.add_datasets()->mutable_stream();
  stream->set_topic("clicks");
  v1::TopicPartitionStatus* partition = stream->add_partitions();
  partition->set_committed(300);
  EXPECT_THAT(StatusText(status), HasSubstr("topic clicks: nobody knows yet how far behind"));
  const std::string row = "clicks  0          0      300        0    -    -    -         -";
  EXPECT_THAT(StatusText(status), HasSubstr(row));
  partition->set_stable_end(300);
  partition->set_lag(0);
  stream->set_lag(0);
  EXPECT_THAT(StatusText(status), Not(HasSubstr("nobody knows")));
  stream->set_held_back(75);
  EXPECT_THAT(StatusText(status), HasSubstr("topic clicks: 75 more offsets wait for open"));
}

TEST(TextOutputTest, StatusNodesShardsEvents) {
  v1::JobStatus status;
  status.set_job("demo");
  status.set_state(v1::JOB_STATE_FAILED);
  status.set_reason("3 shards are FAILED");
  v1::NodeStatus* node = status.add_nodes();
  node->set_name("ps-0");
  node->set_role("ps");
  node->set_last_exit("SIGKILL");
  node->set_partitions(256);
  EXPECT_THAT(StatusText(status),
              AllOf(HasSubstr("demo: failed"), HasSubstr("3 shards are FAILED")));
  EXPECT_THAT(NodesText(status),
              AllOf(HasSubstr("ps-0"), HasSubstr("SIGKILL"), HasSubstr("0/256 partitions")));
  node->set_state("running");
  node->set_drain("draining");
  node->set_drain_left(2);
  node->mutable_counters()->set_pulls(3);
  node->mutable_counters()->set_pushes(1);
  node->mutable_counters()->set_service_us(400);
  v1::NodeStatus* worker = status.add_nodes();
  worker->set_role("worker");
  worker->mutable_times()->set_compute_us(600);
  worker->mutable_times()->set_wait_pull_us(200);
  EXPECT_THAT(NodesText(status), AllOf(HasSubstr("running, draining (2 left)"),
                                       HasSubstr("100 us a request"), HasSubstr("75 % computing")));
  v1::ListPartitionsResponse partitions;
  partitions.set_total(256);
  partitions.add_partitions()->set_snapshot(1);
  partitions.mutable_partitions(0)->set_snapshot_age_ms(2'000);
  EXPECT_THAT(PartitionsText(partitions),
              AllOf(HasSubstr("0:02 ago"), HasSubstr("1 of 256 partitions")));
  v1::ListShardsResponse shards;
  shards.set_total(7);
  shards.add_shards()->add_reasons("bad record");
  EXPECT_THAT(ShardsText(shards), AllOf(HasSubstr("bad record"), HasSubstr("1 of 7 shards")));
  v1::Event event;
  event.set_kind("node-lost");
  event.set_node("ps-0");
  EXPECT_THAT(EventText(event), HasSubstr("node-lost ps-0"));
  event.set_text("a trainer's\n\x1b[31mwords");
  EXPECT_THAT(EventText(event), HasSubstr("a trainer's  [31mwords\n"));
}

}  // namespace
}  // namespace muster
