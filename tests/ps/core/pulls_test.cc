#include "tests/ps/core/owned_partitions_fixture.h"

namespace muster::ps::owned_partitions_test {
namespace {

TEST_F(OwnedPartitionsTest, APullThatIsTooLargeIsRefusedBeforeMemoryIsTaken) {
  owned_.AddTable(SumTable(2, 1u << 29));
  OwnEmpty(3);
  const PullReply reply = Pull(3, {7}, 2);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_THAT(reply.text, HasSubstr("pull fewer keys"));
  EXPECT_EQ(reply.values.size(), 0u);
}

TEST_F(OwnedPartitionsTest, ALimitOfBytesIsOfTheWholeReplyNotOfItsParts) {
  OwnedPartitions owned({.job_seed = 1,
                         .partition_count = 6,
                         .lane = 0,
                         .lane_count = 2,
                         .reply_bytes_max = 5 * 2 * sizeof(float)});
  owned.AddTable(SumTable());
  LaneCommands commands;
  commands.owns = {{kP, OwnerEpoch(3), OwnerEpoch(3), {}, true, {}}};
  owned.Apply(commands);
  wire::Parts parts;
  for (const uint32_t keys : {3, 3, 2}) {
    parts.Add(kP.value(), 3, {{.table = kTable, .keys = keys}});
  }
  const std::vector<uint64_t> keys = {1, 2, 3, 4, 5, 6, 7, 8};
  PullReply reply;
  progress_ = PullWhole({.parts = parts, .keys = keys}, &owned, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
  EXPECT_EQ(reply.parts.at(1).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.parts.at(2).code, PartCode::kOk) << "it fits beside the first";
  EXPECT_THAT(reply.text, HasSubstr("more than 40 bytes; pull fewer keys"));
  EXPECT_EQ(reply.values.size(), 5 * 2 * sizeof(float));
}

/// Pulls by version, of partition 2 and table 1.
class VersionsTest : public OwnedPartitionsTest {
 protected:
  /// Rows 1 and 2 for who holds `version`; then row 7 without a version.
  PullReply PullBy(uint64_t version, uint64_t epoch = 3) {
    const std::vector<uint64_t> keys = {1, 2, 7};
    const wire::Parts parts(
        kP.value(), epoch,
        {{.table = kTable, .keys = 2, .version = version}, {.table = kTable, .keys = 1}});
    PullReply reply;
    progress_ = PullWhole({.parts = parts, .keys = keys}, &owned_, &reply);
    EXPECT_THAT(reply.versions, SizeIs(1));
    return reply;
  }
  static std::vector<float> Values(PullReply& reply) {
    const std::span<const float> floats = reply.values.floats();
    return {floats.begin(), floats.end()};
  }
};

TEST_F(VersionsTest, RowsThatTheAskerHoldsAreNotSent) {
  OwnEmpty(3);
  Push(3, 7, 70, 1);
  PullReply first = PullBy(wire::kNoVersion);
  const uint64_t version = first.versions.at(0);
  EXPECT_NE(version, wire::kNoVersion);
  EXPECT_THAT(Values(first), ElementsAre(0, 0, 0, 0, 70, 70));
  PullReply again = PullBy(version);
  EXPECT_EQ(again.parts.at(0).code, PartCode::kOk);
  EXPECT_THAT(again.versions, ElementsAre(version));
  EXPECT_THAT(Values(again), ElementsAre(70, 70));
  Push(3, 1, 10, 2);
  PullReply changed = PullBy(version);
  EXPECT_NE(changed.versions.at(0), version);
  EXPECT_THAT(Values(changed), ElementsAre(10, 10, 0, 0, 70, 70));
  EXPECT_EQ(PullBy(changed.versions.at(0)).values.size(), 2 * sizeof(float));
  EXPECT_EQ(PullBy(version).values.size(), 6 * sizeof(float)) << "an older version stays one";
}

TEST_F(VersionsTest, APartThatIsRefusedHasNone) {
  OwnEmpty(3);
  const uint64_t version = PullBy(wire::kNoVersion).versions.at(0);
  const PullReply reply = PullBy(version, /*epoch=*/4);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kWrongOwner);
  EXPECT_THAT(reply.versions, ElementsAre(wire::kNoVersion));
  EXPECT_EQ(reply.values.size(), 0u);
}

TEST_F(VersionsTest, AVersionThatIsOnlyToComeIsNotAnsweredWithItself) {
  OwnEmpty(3);
  const uint64_t next = PullBy(wire::kNoVersion).versions.at(0) + 1;
  const std::vector<uint64_t> keys = {1, 2, 3, 4};
  const wire::Parts parts(kP.value(), 3, {{.table = kTable, .keys = 4, .version = next}});
  PullReply reply;
  WorkLimit one_row(1), rest = WorkLimit::None();
  RequestProgress progress;
  const PullRequest request{.parts = parts, .keys = keys};
  ASSERT_EQ(owned_.Pull(request, {.work = &one_row}, &reply, &progress), Progress::kMore);
  Push(3, 1, 10);
  ASSERT_EQ(owned_.Pull(request, {.first = false, .work = &rest}, &reply, &progress),
            Progress::kDone);
  EXPECT_THAT(reply.versions, ElementsAre(wire::kNoVersion)) << "the rows are of two instants";
  EXPECT_EQ(reply.values.size(), 4 * 2 * sizeof(float));
}

TEST_F(VersionsTest, RowsOfTwoInstantsHaveNoVersion) {
  OwnEmpty(3);
  const std::vector<uint64_t> keys = {1, 2, 3, 4, 5, 6, 7, 8};
  wire::Parts parts(kP.value(), 3, {{.table = kTable, .keys = 4, .version = wire::kNoVersion}});
  parts.Add(kP.value(), 3, {{.table = kTable, .keys = 4, .version = wire::kNoVersion}});
  for (const bool pushes : {false, true}) {
    PullReply reply;
    RequestProgress progress;
    const PullRequest request{.parts = parts, .keys = keys};
    bool first = true;
    for (int slices = 0;; ++slices) {
      ASSERT_LT(slices, 100);
      WorkLimit one_row(1);
      const Slice slice{.first = std::exchange(first, false), .work = &one_row};
      if (owned_.Pull(request, slice, &reply, &progress) == Progress::kDone) break;
      if (pushes && slices == 1) Push(3, 1, 10);  // the first group is half gathered
    }
    EXPECT_EQ(reply.versions.at(0) == wire::kNoVersion, pushes);
    EXPECT_NE(reply.versions.at(1), wire::kNoVersion);
  }
}

TEST_F(VersionsTest, WhatIsNotSentDoesNotCountAsBytes) {
  OwnEmpty(3);
  const auto bytes = [&](uint64_t version) {
    const PullReply reply = PullBy(version);
    owned_.CountServed({}, progress_);
    const std::vector<PartitionTraffic> traffic = owned_.ReportTraffic(++sequence_, 9);
    return std::pair(reply.versions.at(0), traffic.at(0).moved_bytes);
  };
  const auto [version, all] = bytes(wire::kNoVersion);
  EXPECT_LT(bytes(version).second - all, all);
}

TEST_F(OwnedPartitionsTest, ARowThatTheEncodingCannotCarryIsRefusedByName) {
  OwnEmpty(3);
  EXPECT_EQ(Push(3, 7, 7e4f).code, PartCode::kOk);
  const std::vector<uint64_t> keys = {6, 7};
  const wire::Parts parts(kP.value(), 3, {{.table = kTable, .keys = 2}});
  PullReply reply;
  progress_ = PullWhole({.parts = parts, .keys = keys, .encoding = wire::Encoding::kFloat16},
                        &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kBadRequest);
  EXPECT_EQ(reply.values.size(), 0u);
  EXPECT_THAT(reply.text, HasSubstr("table 't': the row of key 7 has 70000 in column 0, but "
                                    "float16 ends at 65504"));
  reply = {};
  progress_ = PullWhole({.parts = parts, .keys = keys, .encoding = wire::Encoding::kBfloat16},
                        &owned_, &reply);
  EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
}

}  // namespace
}  // namespace muster::ps::owned_partitions_test
