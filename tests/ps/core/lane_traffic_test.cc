#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, TrafficIsCountedPerPartitionAndItsTimeSharedOutByRows) {
  OwnEmpty(1);
  Own({PartitionId(4), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  Push(1, 7, 1);
  owned_.CountServed({.received_bytes = 100, .sent_bytes = 10, .time = microseconds(50)},
                     progress_);
  wire::Parts parts(2, 1, {{.table = kTable, .keys = 1}});
  parts.Add(4, 1, {{.table = kTable, .keys = 3}});
  parts.Add(4, 9, {{.table = kTable, .keys = 1}});
  const std::vector<uint64_t> keys = {7, 1, 2, 3, 4};
  PullReply reply;
  progress_ = PullWhole({.parts = parts, .keys = keys}, &owned_, &reply);
  owned_.CountServed({.received_bytes = 5, .sent_bytes = 6, .time = microseconds(40)}, progress_);
  constexpr uint64_t kRowBytes = 8 + 2 * 4;
  const std::vector<PartitionTraffic> traffic = owned_.ReportTraffic(++sequence_, 10);
  ASSERT_THAT(traffic, SizeIs(2));
  EXPECT_EQ(traffic[0].partition, kP);
  EXPECT_EQ(traffic[0].pulls, 1u);
  EXPECT_EQ(traffic[0].pushes, 1u);
  EXPECT_EQ(traffic[0].moved_rows, 2u);
  EXPECT_EQ(traffic[0].moved_bytes, 2 * kRowBytes);
  EXPECT_EQ(traffic[0].service_us, 60u);
  EXPECT_EQ(traffic[0].rows, 1u);
  EXPECT_GT(traffic[0].row_bytes, 0u);
  EXPECT_EQ(traffic[1].partition, PartitionId(4));
  EXPECT_EQ(traffic[1].pulls, 1u) << "a refused part is none";
  EXPECT_EQ(traffic[1].moved_rows, 3u);
  EXPECT_EQ(traffic[1].service_us, 30u);
  const ServerCounters counters = owned_.Report(++sequence_).counters;
  EXPECT_EQ(counters.pushes, 1u);
  EXPECT_EQ(counters.received_bytes, 105u);
  EXPECT_EQ(counters.sent_bytes, 16u);
  EXPECT_EQ(counters.service_us, 90u);
  // Refused as a whole: time that no partition took.
  EXPECT_EQ(Push(9, 7, 1).code, PartCode::kWrongOwner);
  owned_.CountServed({.received_bytes = 1, .sent_bytes = 1, .time = microseconds(10)}, progress_);
  EXPECT_EQ(owned_.Report(++sequence_).counters.service_us, 100u);
  EXPECT_EQ(owned_.ReportTraffic(sequence_, 10)[0].service_us, 60u);
}

TEST_F(OwnedPartitionsTest, TrafficIsReportedUntilAnsweredAndAllOfItToANewMaster) {
  const auto answered = [&](uint64_t sequence, bool new_master = false) {
    LaneCommands commands;
    commands.sequence = sequence;
    commands.new_master = new_master;
    Apply(commands);
  };
  OwnEmpty(1);
  Own({PartitionId(4), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  EXPECT_THAT(owned_.ReportTraffic(1, 10), SizeIs(2)) << "they are new";
  EXPECT_THAT(owned_.ReportTraffic(2, 10), SizeIs(2)) << "the first call failed";
  answered(2);
  EXPECT_THAT(owned_.ReportTraffic(3, 10), IsEmpty());
  Push(1, 7, 1);
  EXPECT_THAT(owned_.ReportTraffic(4, 10), SizeIs(1));
  answered(3);
  EXPECT_THAT(owned_.ReportTraffic(5, 10), SizeIs(1)) << "an older call was answered";
  answered(5);
  EXPECT_THAT(owned_.ReportTraffic(6, 10), IsEmpty());
  answered(6, /*new_master=*/true);
  const auto first = owned_.ReportTraffic(7, 1), second = owned_.ReportTraffic(8, 1);
  ASSERT_THAT(first, SizeIs(1));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_NE(first[0].partition, second[0].partition) << "those left out come next";
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
