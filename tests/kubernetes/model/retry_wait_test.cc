#include "kubernetes/model/retry_wait.h"

#include <gtest/gtest.h>

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RetryWait, DoublesUpToTenSeconds) {
  // The random number picks between half and all: 0 is half.
  EXPECT_EQ(RetryWait(1, std::nullopt, 0), milliseconds(100));
  EXPECT_EQ(RetryWait(1, std::nullopt, 100), milliseconds(200));
  EXPECT_EQ(RetryWait(2, std::nullopt, 0), milliseconds(200));
  EXPECT_EQ(RetryWait(4, std::nullopt, 0), milliseconds(800));
  EXPECT_EQ(RetryWait(7, std::nullopt, 0), milliseconds(5'000));
  EXPECT_EQ(RetryWait(4'000'000'000, std::nullopt, 5'000), milliseconds(10'000));
  EXPECT_EQ(RetryWait(0, std::nullopt, 0), milliseconds(100));
}

TEST(RetryWait, WaitsAsLongAsTheServerAsks) {
  EXPECT_EQ(RetryWait(1, seconds(7), 0), seconds(7));
  EXPECT_EQ(RetryWait(7, seconds(1), 5'000), seconds(10));
}

}  // namespace
}  // namespace muster::kubernetes
