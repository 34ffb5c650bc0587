#include "worker_sdk/session/summed_step.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace muster::internal {
namespace {

sdk::GradientSums TwoBuckets() {
  const GroupTensor tensors[] = {{"fixed", GroupDtype::kFixedPoint, 2, true, 1},
                                 {"float", GroupDtype::kFloat32, 1, true, 0}};
  return sdk::GradientSums::Create(tensors).value();
}

template <typename T>
void Put(std::span<std::byte> to, const std::vector<T>& values) {
  ASSERT_EQ(to.size(), values.size() * sizeof(T));
  std::memcpy(to.data(), values.data(), to.size());
}

TEST(SummedStepTest, DecodesEachBucketAsItWasAdded) {
  const sdk::GradientSums buckets = TwoBuckets();
  SummedStep sums(&buckets, /*evaluate=*/false);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums.bytes(), 2 * sizeof(int64_t) + sizeof(float));
  Put<int64_t>(sums.encoded(0), {3, -2});
  Put<float>(sums.encoded(1), {0.25F});
  ASSERT_TRUE(sums.Decode(buckets).ok());
  EXPECT_EQ(sums.floats(0)[0], 1.5F);
  EXPECT_EQ(sums.floats(0)[1], -1.0F);
  EXPECT_EQ(sums.floats(1)[0], 0.25F);
}

TEST(SummedStepTest, ASumThatIsNoNumberIsAnError) {
  const sdk::GradientSums buckets = TwoBuckets();
  SummedStep sums(&buckets, /*evaluate=*/false);
  Put<int64_t>(sums.encoded(0), {0, 0});
  Put<float>(sums.encoded(1), {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(absl::IsOutOfRange(sums.Decode(buckets)));
}

TEST(SummedStepTest, AnEvaluationHasNoSums) {
  const sdk::GradientSums buckets = TwoBuckets();
  SummedStep sums(&buckets, /*evaluate=*/true);
  EXPECT_EQ(sums.size(), 0u);
  EXPECT_EQ(sums.bytes(), 0u);
  EXPECT_EQ(sums.facts.evaluate, 1u);
  EXPECT_TRUE(sums.Decode(buckets).ok());
}

}  // namespace
}  // namespace muster::internal
