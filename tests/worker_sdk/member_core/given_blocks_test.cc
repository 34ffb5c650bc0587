#include "worker_sdk/member_core/given_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GivenBlocksTest : public ::testing::Test {
 protected:
  GivenBlocksTest() { gradients_.Begin(1); }
  WantedSum Wanted(uint64_t attempt, uint64_t step, uint32_t minibatches) {
    return {AttemptNumber(attempt), StepNumber(step), 1, {{MinibatchIndex(0), minibatches}}};
  }
  void Add(uint32_t minibatch, uint32_t bucket) {
    ASSERT_TRUE(gradients_.Add(1, MinibatchIndex(minibatch), bucket, std::vector<float>{1}).ok());
  }
  std::optional<uint32_t> Summed(uint64_t attempt, uint64_t step, uint32_t bucket, uint32_t crc) {
    return sums_.OnBlock(AttemptNumber(attempt), StepNumber(step), bucket, crc);
  }

  std::vector<uint32_t> Begin(const std::optional<WantedSum>& wanted) {
    std::vector<uint32_t> begun;
    sums_.Follow(wanted, gradients_.size());
    for (uint32_t i = 0; i < gradients_.size(); ++i) {
      if (sums_.Begin(i, &gradients_)) begun.push_back(i);
    }
    return begun;
  }

  OwnGradients gradients_ = *OwnGradients::Create(std::vector<GroupTensor>{
      {"a", GroupDtype::kFixedPoint, 1, true, 24}, {"b", GroupDtype::kFloat32, 1, true, 0}});
  GivenBlocks sums_;
};

TEST_F(GivenBlocksTest, BeginsABucketOnceAsSoonAsItHasTheShare) {
  EXPECT_THAT(Begin(std::nullopt), IsEmpty());
  Add(0, 1);
  EXPECT_THAT(Begin(Wanted(1, 1, 2)), IsEmpty());
  Add(1, 1);
  EXPECT_THAT(Begin(Wanted(1, 1, 2)), ElementsAre(1));
  EXPECT_THAT(Begin(Wanted(1, 1, 2)), IsEmpty());
  Add(0, 0);
  Add(1, 0);
  EXPECT_THAT(Begin(Wanted(1, 1, 2)), ElementsAre(0));
}

TEST_F(GivenBlocksTest, ANewAttemptBeginsAllBucketsAgain) {
  gradients_.End(1, MinibatchIndex(0));
  EXPECT_THAT(Begin(Wanted(1, 1, 1)), ElementsAre(0, 1));
  EXPECT_FALSE(Summed(1, 1, 0, 5).has_value());
  EXPECT_THAT(Begin(Wanted(2, 1, 1)), ElementsAre(0, 1));
  // Late news of the old attempt.
  EXPECT_FALSE(Summed(1, 1, 1, 6).has_value());
  EXPECT_FALSE(Summed(2, 1, 1, 6).has_value());
  EXPECT_TRUE(Summed(2, 1, 0, 5).has_value());
}

TEST_F(GivenBlocksTest, TheDigestIsOfAllBucketsInTheirOrder) {
  gradients_.End(1, MinibatchIndex(0));
  auto digest = [&](uint64_t attempt, uint32_t first, uint32_t second, bool backwards) {
    Begin(Wanted(attempt, 1, 1));
    EXPECT_FALSE(Summed(attempt, 1, 2, 0).has_value());
    uint32_t bucket = backwards ? 1 : 0;
    EXPECT_FALSE(Summed(attempt, 1, bucket, backwards ? second : first).has_value());
    EXPECT_FALSE(Summed(attempt, 1, bucket, 99).has_value());
    return Summed(attempt, 1, 1 - bucket, backwards ? first : second).value();
  };
  uint32_t expected = digest(1, 5, 6, false);
  EXPECT_EQ(digest(2, 5, 6, true), expected);
  EXPECT_NE(digest(3, 6, 5, false), expected);
  EXPECT_NE(digest(4, 5, 7, false), expected);
}

}  // namespace
}  // namespace muster::sdk
