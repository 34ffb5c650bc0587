#include "scaler/policy/window.h"

#include <gtest/gtest.h>

#include "tests/scaler/policy/fake_job.h"

namespace muster::scaler {
namespace {

using std::chrono::seconds;

TEST(WindowTest, ASpanIsWhatHappenedSince) {
  FakeJob job;
  job.Add(NodeRole::kWorker, 1, {.minibatches = 10, .cpus = 0.5, .throttled = 0.25});
  for (int i = 0; i < 30; ++i) job.Tick();
  const NodeView& node = job.Node("worker-0");
  const std::optional<Span> span = SpanSince(node, job.view.now - seconds(10), seconds(5));
  ASSERT_TRUE(span.has_value());
  EXPECT_EQ(span->window(), seconds(10));
  EXPECT_EQ(span->end->worker.minibatches - span->begin->worker.minibatches, 100u);
  EXPECT_NEAR(span->cpus(), 0.5, 1e-9);
  EXPECT_NEAR(span->throttled(), 0.25, 1e-9);
}

TEST(WindowTest, HeldBackOnTwoCoresIsNoMoreThanAllTheTime) {
  FakeJob job;
  job.Add(NodeRole::kServer, 1, {.throttled = 1.3});
  for (int i = 0; i < 10; ++i) job.Tick();
  const std::optional<Span> span = SpanSince(job.Node("ps-0"), TimePoint(), seconds(5));
  ASSERT_TRUE(span.has_value());
  EXPECT_EQ(span->throttled(), 1);
}

TEST(WindowTest, TooShortOrOfTwoLivesIsNone) {
  FakeJob job;
  job.Add(NodeRole::kWorker, 1);
  NodeView& node = job.Node("worker-0");
  EXPECT_FALSE(SpanSince(node, TimePoint(), seconds(1)).has_value());
  job.Tick();
  EXPECT_FALSE(SpanSince(node, TimePoint(), seconds(1)).has_value());
  for (int i = 0; i < 5; ++i) job.Tick();
  EXPECT_TRUE(SpanSince(node, TimePoint(), seconds(5)).has_value());
  EXPECT_FALSE(SpanSince(node, TimePoint(), seconds(6)).has_value());
  EXPECT_FALSE(SpanSince(node, job.view.now + seconds(1), seconds(1)).has_value());
  node.samples.back().worker.minibatches = 0;
  EXPECT_FALSE(SpanSince(node, TimePoint(), seconds(5)).has_value());
}

TEST(WindowTest, Median) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({3, 1}), 2);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 9, 2}), 3);
}

TEST(WindowTest, WordsForPeople) {
  EXPECT_EQ(ToString(Action::kSetWorkers), "set-workers");
  EXPECT_EQ(ToString(EndCause::kPlatform), "platform");
}

}  // namespace
}  // namespace muster::scaler
