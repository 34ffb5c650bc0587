#include "worker_sdk/core/unwritten_outputs.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kWriteStart{seconds(100)};

TEST(UnwrittenOutputsTest, AnErrorOfThePlaceIsToldUntilAWriteWorks) {
  UnwrittenOutputs outputs;
  EXPECT_EQ(outputs.Text(kWriteStart), "");
  outputs.End(outputs.Begin("/o/a", 1, kWriteStart), absl::UnavailableError("s3://o is away"));
  EXPECT_TRUE(outputs.failed());
  EXPECT_EQ(outputs.Text(kWriteStart), "s3://o is away");
  const uint64_t next = outputs.Begin("/o/a", 1, kWriteStart);
  EXPECT_EQ(outputs.Text(kWriteStart), "s3://o is away") << "it may fail, too";
  outputs.End(next, absl::AbortedError("the lease is lost"));
  EXPECT_EQ(outputs.Text(kWriteStart), "s3://o is away") << "that says nothing of the place";
  outputs.End(outputs.Begin("/o/a", 1, kWriteStart), absl::OkStatus());
  EXPECT_FALSE(outputs.failed());
  EXPECT_EQ(outputs.Text(kWriteStart), "");
  outputs.End(outputs.Begin("/o/a", 1, kWriteStart), absl::AbortedError("the lease is lost"));
  EXPECT_EQ(outputs.Text(kWriteStart), "");
}

TEST(UnwrittenOutputsTest, AWriteThatTakesLongerThanItsBytesNeedHangs) {
  UnwrittenOutputs outputs;
  const uint64_t large =
      outputs.Begin("/o/large", 60 * UnwrittenOutputs::kBytesPerSecond, kWriteStart);
  const uint64_t small = outputs.Begin("/o/small", 1, kWriteStart);
  const auto text = [&](milliseconds after) { return outputs.Text(kWriteStart + after); };
  EXPECT_EQ(text(milliseconds(2'999)), "");
  EXPECT_EQ(text(seconds(3)), "writing /o/small does not come to an end");
  EXPECT_FALSE(outputs.failed()) << "it may come to one";
  outputs.End(small, absl::OkStatus());
  EXPECT_EQ(text(milliseconds(62'999)), "");
  EXPECT_EQ(text(seconds(63)), "writing /o/large does not come to an end");
  outputs.End(large, absl::OkStatus());
  EXPECT_EQ(text(seconds(100)), "");
}

TEST(UnwrittenOutputsTest, WhatTheMasterGetsIsShortAndValid) {
  UnwrittenOutputs outputs;
  const std::string error = "/o/\xff" + std::string(10'000, 'x');
  outputs.End(outputs.Begin("/o/a", 1, kWriteStart), absl::UnavailableError(error));
  EXPECT_EQ(outputs.Text(kWriteStart), ValidUtf8(error, UnwrittenOutputs::kTextBytesMax));
  EXPECT_LE(outputs.Text(kWriteStart).size(), 4'096u);
}

}  // namespace
}  // namespace muster::sdk
