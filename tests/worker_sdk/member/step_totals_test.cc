#include "worker_sdk/member/step_totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "tests/support/sanitizers.h"

namespace muster::internal {
namespace {

using ::testing::ElementsAre;

sdk::OwnGradients TwoBuckets() {
  const GroupTensor tensors[] = {{"fixed", GroupDtype::kFixedPoint, 2, true, 1},
                                 {"float", GroupDtype::kFloat32, 1, true, 0}};
  return sdk::OwnGradients::Create(tensors).value();
}

template <typename T>
void Put(std::span<std::byte> to, const std::vector<T>& values) {
  ASSERT_EQ(to.size(), values.size() * sizeof(T));
  std::memcpy(to.data(), values.data(), to.size());
}

TEST(StepTotalsTest, DecodesEachBucketAsItWasAdded) {
  const sdk::OwnGradients buckets = TwoBuckets();
  const auto sums_made = StepTotals::Create(buckets).value();
  StepTotals& sums = *sums_made;
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums.bytes(), 2 * sizeof(int64_t) + sizeof(float));
  EXPECT_EQ(sums.facts.evaluate, 0u) << "it is to be applied";
  Put<int64_t>(sums.encoded(0), {3, -2});
  Put<float>(sums.encoded(1), {0.25F});
  ASSERT_TRUE(sums.Decode(buckets).ok());
  EXPECT_EQ(sums.floats(0)[0], 1.5F);
  EXPECT_EQ(sums.floats(0)[1], -1.0F);
  EXPECT_EQ(sums.floats(1)[0], 0.25F);
}

TEST(StepTotalsTest, BucketsOfABlockHaveTheirPartOfItsSum) {
  const GroupTensor tensors[] = {{"a", GroupDtype::kFixedPoint, 2, true, 1},
                                 {"float", GroupDtype::kFloat32, 1, true, 0},
                                 {"b", GroupDtype::kFixedPoint, 1, true, 1}};
  const sdk::OwnGradients buckets = sdk::OwnGradients::Create(tensors).value();
  const auto sums = StepTotals::Create(buckets).value();
  ASSERT_EQ(sums->size(), 2u);
  EXPECT_EQ(sums->buckets(), 3u);
  Put<float>(sums->encoded(0), {0.25F});
  Put<int64_t>(sums->encoded(1), {3, -2, 8});
  EXPECT_TRUE(sums->floats(2).empty());
  ASSERT_TRUE(sums->Decode(buckets).ok());
  EXPECT_THAT(sums->floats(0), ElementsAre(1.5F, -1));
  EXPECT_THAT(sums->floats(1), ElementsAre(0.25F));
  EXPECT_THAT(sums->floats(2), ElementsAre(4));
  sums->DropFloats();
  EXPECT_TRUE(sums->floats(2).empty());
}

TEST(StepTotalsTest, WhatOthersNeedStaysWithoutTheNumbers) {
  const sdk::OwnGradients buckets = TwoBuckets();
  const auto sums_made = StepTotals::Create(buckets).value();
  StepTotals& sums = *sums_made;
  Put<int64_t>(sums.encoded(0), {3, -2});
  Put<float>(sums.encoded(1), {0.25F});
  ASSERT_TRUE(sums.Decode(buckets).ok());
  sums.DropFloats();
  EXPECT_TRUE(sums.floats(0).empty());
  EXPECT_EQ(sums.floats(0).data(), nullptr) << "their memory is not free";
  ASSERT_TRUE(sums.Decode(buckets).ok());
  EXPECT_EQ(sums.floats(0)[0], 1.5F);
}

TEST(StepTotalsTest, ASumThatIsNoNumberIsAnError) {
  const sdk::OwnGradients buckets = TwoBuckets();
  const auto sums_made = StepTotals::Create(buckets).value();
  StepTotals& sums = *sums_made;
  Put<int64_t>(sums.encoded(0), {0, 0});
  Put<float>(sums.encoded(1), {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(absl::IsOutOfRange(sums.Decode(buckets)));
}

TEST(StepTotalsTest, SumsOfADeviceGoToOthersAndComeFromThem) {
  const GroupTensor tensors[] = {{"fixed", GroupDtype::kFixedPoint, 2, true, 1},
                                 {"float", GroupDtype::kFloat32, 1, true, 0}};
  const uint32_t elsewhere[] = {0};
  const sdk::OwnGradients buckets = sdk::OwnGradients::Create(tensors, elsewhere).value();
  const auto gpu =
      std::make_shared<collectives::Gpu>(collectives::CudaDevice::Open(MUSTER_FAKE_GPU, 0).value());
  collectives::Gpu& device = *gpu;
  const auto giver_made = StepTotals::Create(buckets).value();
  StepTotals& giver = *giver_made;
  ASSERT_TRUE(giver.Allocate(buckets, &device).ok());
  EXPECT_EQ(giver.device_encoded(1), nullptr);
  EXPECT_EQ(giver.encoded(0).data(), nullptr) << "it would take the room twice";
  EXPECT_EQ(giver.device_encoded(0)->bytes(), 2 * sizeof(int64_t));
  EXPECT_EQ(giver.device_floats(0)->bytes(), 2 * sizeof(float));
  const int64_t values[] = {3, -2};
  ASSERT_TRUE(device.CopyToDevice(std::as_bytes(std::span(values)), *giver.device_encoded(0)).ok());
  Put<float>(giver.encoded(1), {0.25F});
  ASSERT_TRUE(giver.Decode(buckets).ok());
  EXPECT_EQ(giver.floats(1)[0], 0.25F);
  ASSERT_TRUE(giver.MoveToHost(&device).ok());
  EXPECT_EQ(giver.device_encoded(0), nullptr);
  EXPECT_EQ(giver.device_floats(0), nullptr);

  const auto learner_made = StepTotals::Create(buckets).value();
  StepTotals& learner = *learner_made;
  for (uint32_t bucket = 0; bucket < 2; ++bucket) {
    std::ranges::copy(giver.encoded(bucket), learner.encoded(bucket).begin());
  }
  ASSERT_TRUE(learner.Decode(buckets).ok());
  ASSERT_TRUE(learner.CopyToDevice(buckets, &device).ok());
  std::vector<float> floats(2);
  ASSERT_TRUE(
      device.CopyToHost(*learner.device_floats(0), std::as_writable_bytes(std::span(floats))).ok());
  EXPECT_EQ(floats, (std::vector<float>{1.5F, -1}));
  EXPECT_EQ(learner.device_floats(1), nullptr);
}

TEST(StepTotalsTest, ABucketOnTheDeviceIsFoundWhateverItsBlockIs) {
  const GroupTensor tensors[] = {{"a", GroupDtype::kFixedPoint, 2, true, 1},
                                 {"b", GroupDtype::kFixedPoint, 1, true, 1},
                                 {"on the device", GroupDtype::kFloat32, 3, true, 0}};
  const uint32_t elsewhere[] = {2};
  const sdk::OwnGradients buckets = sdk::OwnGradients::Create(tensors, elsewhere).value();
  const auto gpu =
      std::make_shared<collectives::Gpu>(collectives::CudaDevice::Open(MUSTER_FAKE_GPU, 0).value());
  const auto sums = StepTotals::Create(buckets).value();
  ASSERT_EQ(sums->size(), 2u) << "two buckets share a block";
  ASSERT_TRUE(sums->Allocate(buckets, gpu.get()).ok());
  ASSERT_NE(sums->FloatsOnDevice(2), nullptr);
  EXPECT_EQ(sums->FloatsOnDevice(2)->bytes(), 3 * sizeof(float));
  EXPECT_EQ(sums->FloatsOnDevice(0), nullptr);
  EXPECT_EQ(sums->FloatsOnDevice(1), nullptr);
}

TEST(StepTotalsTest, LearnersGetAllFactsOfAStep) {
  const StepFacts of_giver{.records = 7, .epoch = 8, .evaluate = 1};
  StepFacts of_learner;
  ASSERT_EQ(of_giver.bytes().size(), of_learner.bytes().size());
  std::ranges::copy(of_giver.bytes(), of_learner.bytes().begin());
  EXPECT_EQ(of_learner.records, 7u);
  EXPECT_EQ(of_learner.epoch, 8u);
  EXPECT_EQ(of_learner.evaluate, 1u);
}

TEST(StepTotalsTest, SumsThatAreTooLargeForTheMemoryAreAnError) {
  if (testing::kSanitized) GTEST_SKIP() << "sanitizers end the process at such a request";
  const GroupTensor huge[] = {{"huge", GroupDtype::kFloat32, uint64_t{1} << 60, true, 0}};
  const uint32_t elsewhere[] = {0};
  const sdk::OwnGradients buckets = sdk::OwnGradients::Create(huge, elsewhere).value();
  const absl::Status status = StepTotals::Create(buckets).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(status.message().find("\"huge\"") != std::string_view::npos) << status;
}

TEST(StepTotalsTest, AnEvaluationHasNoSums) {
  const sdk::OwnGradients buckets = TwoBuckets();
  StepTotals sums;
  EXPECT_EQ(sums.size(), 0u);
  EXPECT_EQ(sums.buckets(), 0u);
  EXPECT_EQ(sums.bytes(), 0u);
  EXPECT_EQ(sums.facts.evaluate, 1u);
  EXPECT_TRUE(sums.Decode(buckets).ok());
}

}  // namespace
}  // namespace muster::internal
