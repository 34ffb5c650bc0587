#include "kubernetes/model/retry_wait.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;

TEST(RetryWait, DoublesUpToTenSeconds) {
  Rng random(1);
  const std::vector<std::pair<uint32_t, int>> cases = {
      {0, 200}, {1, 200}, {2, 400}, {4, 1'600}, {7, 10'000}, {4'000'000'000, 10'000}};
  for (const auto& [failures, whole] : cases) {
    EXPECT_THAT(RetryWait(failures, std::nullopt, &random),
                AllOf(Ge(milliseconds(whole / 2)), Lt(milliseconds(whole))))
        << failures;
  }
}

TEST(RetryWait, WaitsAsLongAsTheServerAsks) {
  Rng random(1);
  EXPECT_EQ(RetryWait(1, seconds(7), &random), seconds(7));
  EXPECT_GE(RetryWait(7, seconds(1), &random), seconds(5));
}

}  // namespace
}  // namespace muster::kubernetes
