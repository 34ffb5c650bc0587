#include "master/core/done_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

ShardMetrics CountOf(uint64_t records) {
  return {.records = records};
}
ShardMetrics AllKinds() {
  ShardMetrics metrics{.records = 9, .rejected_records = 2, .reject_samples = {"a:3: no number"}};
  metrics.means["loss"] = {1.5, 9};
  AddScore(&metrics.aucs["auc"], 0.25, true);
  return metrics;
}

TEST(DoneDetails, LeaveAtBothEndsAsTheyCame) {
  DoneDetails details;
  details.Add("worker-0", 10, CountOf(10));
  details.Add("worker-1", 9, AllKinds());
  details.Add("worker-0", 8, CountOf(7));
  ASSERT_EQ(details.size(), 3u);
  const DoneDetail first = details.TakeFirst();
  EXPECT_EQ(first.worker, "worker-0");
  EXPECT_EQ(first.records, 10u);
  EXPECT_EQ(first.metrics, CountOf(10));
  const DoneDetail last = details.TakeLast();
  EXPECT_EQ(last.worker, "worker-0");
  EXPECT_EQ(last.records, 8u);
  EXPECT_EQ(last.metrics, CountOf(7)) << "what the worker says of its records is kept";
  const DoneDetail middle = details.TakeLast();
  EXPECT_EQ(middle.worker, "worker-1");
  EXPECT_EQ(middle.metrics, AllKinds());
  EXPECT_EQ(details.size(), 0u);
  EXPECT_EQ(details.bytes(), 0u);
}

TEST(DoneDetails, OneWithoutMetricsTakesLittle) {
  DoneDetails details;
  for (int i = 0; i < 1000; ++i) details.Add("worker-0", 10, CountOf(10));
  EXPECT_LE(details.bytes(), 1000u * 100u);
  const uint64_t before = details.bytes();
  details.Add("worker-0", 9, AllKinds());
  EXPECT_GT(details.bytes(), before + 100) << "metrics count";
}

TEST(DoneDetails, NamesThatNobodyNeedsGo) {
  DoneDetails details;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "worker-" + std::to_string(i);
    details.Add(name, 1, CountOf(1));
    details.Add(name, 2, CountOf(2));
    EXPECT_EQ(details.TakeFirst().worker, name);
    EXPECT_EQ(details.worker_count(), 1u);
    EXPECT_EQ(details.TakeFirst().worker, name);
    EXPECT_EQ(details.worker_count(), 0u);
  }
}

}  // namespace
}  // namespace muster
