#include "verify/workload/group_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::verify {
namespace {

constexpr uint64_t kRecords = 300;

/// Applies one step that has these records.
void Step(GroupState* state, const std::vector<uint64_t>& ids, uint32_t epoch) {
  GroupGradients sums(kRecords);
  for (const uint64_t id : ids) sums.Add(id, epoch, state->curve());
  ApplySums({sums.ids, sums.mixed, sums.curve}, ids.size(), state);
}

TEST(GroupStateTest, TablesHoldWhatRecordsAdd) {
  GroupState state(kRecords);
  Step(&state, {7, 299}, 0);
  Step(&state, {7}, 2);
  EXPECT_EQ(state.step_count(), 2u);
  EXPECT_EQ(state.ids()[7], 1 + 64);
  EXPECT_EQ(state.ids()[299], 1);
  EXPECT_EQ(state.ids()[8], 0);
  const Contribution seven = ContributionOf(7, 0);
  EXPECT_EQ(BucketsKeys()[7], seven.bucket_key);
  EXPECT_EQ(WideKeys()[7], seven.wide_key);
  for (size_t j = 0; j < kBucketsDim; ++j) {
    EXPECT_EQ(state.buckets()[7 * kBucketsDim + j], kBucketsInitial + 2 * seven.buckets[j]);
  }
  for (size_t j = 0; j < kWideDim; ++j) {
    EXPECT_EQ(state.wide()[7 * kWideDim + j], 2 * seven.wide[j]);
  }
  EXPECT_EQ(state.totals()[0], 3);
  EXPECT_EQ(BucketsKeys().size() * kBucketsDim, state.buckets().size());
  EXPECT_EQ(WideKeys().size() * kWideDim, state.wide().size());
}

TEST(GroupStateTest, OrderOfStepsShowsInTheBits) {
  GroupState forward(kRecords);
  Step(&forward, {1, 2}, 0);
  Step(&forward, {3, 4}, 0);
  GroupState backward(kRecords);
  Step(&backward, {3, 4}, 0);
  Step(&backward, {1, 2}, 0);
  EXPECT_TRUE(std::ranges::equal(forward.ids(), backward.ids()));
  EXPECT_FALSE(forward == backward);
  EXPECT_NE(forward.Digest(), backward.Digest());
}

TEST(GroupStateTest, DigestIsOfEveryPart) {
  const GroupState before(kRecords);
  const auto digest_after = [&](auto change) {
    GroupState state = before;
    change(&state);
    return state.Digest();
  };
  EXPECT_EQ(digest_after([](GroupState*) {}), before.Digest());
  EXPECT_NE(digest_after([](GroupState* s) { s->ids()[kRecords - 1] = 1; }), before.Digest());
  EXPECT_NE(digest_after([](GroupState* s) { s->mixed().back() = 1; }), before.Digest());
  EXPECT_NE(digest_after([](GroupState* s) { s->curve().back() = 1; }), before.Digest());
  EXPECT_NE(digest_after([](GroupState* s) { s->curve()[0] = -0.5F; }), before.Digest());
  EXPECT_NE(digest_after([](GroupState* s) { s->steps()[0] = 1; }), before.Digest());
}

TEST(GroupStateTest, BytesAndBack) {
  GroupState state(kRecords);
  Step(&state, {5, 6, 7}, 1);
  const std::string bytes = state.ToBytes();
  const std::optional<GroupState> read = GroupState::FromBytes(bytes, kRecords);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(*read == state);
  EXPECT_EQ(read->Digest(), state.Digest());
  EXPECT_FALSE(GroupState::FromBytes(bytes, kRecords + 1).has_value());
  EXPECT_FALSE(GroupState::FromBytes(bytes.substr(1), kRecords).has_value());
}

TEST(GroupGradientsTest, ClearedGradientsAddNothing) {
  const GroupState state(kRecords);
  GroupGradients gradients(kRecords);
  gradients.Add(3, 0, state.curve());
  gradients.Clear();
  GroupState after = state;
  ApplySums({gradients.ids, gradients.mixed, gradients.curve}, 1, &after);
  after.steps()[0] = 0;
  EXPECT_TRUE(after == state);
}

}  // namespace
}  // namespace muster::verify
