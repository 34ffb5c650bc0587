#include <gmock/gmock.h>

#include <vector>

#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A session over the record numbers [40, 46), in minibatches of 2.
class RecordNumbersTest : public SessionTest {
 protected:
  RecordNumbersTest() {
    master_.AddNumbers(40, 6, 2);
    master_.EndWhenDone();
  }
};

TEST_F(RecordNumbersTest, MinibatchesHaveNumbersAndNoBytes) {
  Session session = Connect();
  std::vector<int64_t> seen;
  std::vector<std::pair<std::shared_ptr<const void>, std::span<const int64_t>>> kept;
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  for (Minibatch& batch : shard->Minibatches()) {
    EXPECT_THAT(batch.record_numbers(), SizeIs(2));
    EXPECT_THAT(batch.records(), SizeIs(2));
    EXPECT_THAT(batch.records(), Each(IsEmpty()));
    EXPECT_FALSE(batch.topic());
    seen.insert(seen.end(), batch.record_numbers().begin(), batch.record_numbers().end());
    kept.emplace_back(batch.records_owner(), batch.record_numbers());
  }
  shard.reset();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_THAT(seen, ElementsAre(40, 41, 42, 43, 44, 45));
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto first = static_cast<int64_t>(40 + 2 * i);
    EXPECT_THAT(kept[i].second, ElementsAre(first, first + 1)) << "its owner keeps it";
  }
}

TEST_F(RecordNumbersTest, ARejectedOneIsNamed) {
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  for (Minibatch& batch : shard->Minibatches()) {
    if (batch.record_numbers()[0] == 42) batch.Reject(1, "odd");
  }
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  ASSERT_EQ(master_.done.size(), 1u);
  EXPECT_THAT(master_.done[0].metrics.reject_samples, ElementsAre("record 43: odd"));
}

TEST_F(SessionTest, LinesHaveNoNumbers) {
  AddShard("a.csv");
  master_.EndWhenDone();
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value()) << session.status().message();
  for (Minibatch& batch : shard->Minibatches()) EXPECT_THAT(batch.record_numbers(), IsEmpty());
}

}  // namespace
}  // namespace muster
