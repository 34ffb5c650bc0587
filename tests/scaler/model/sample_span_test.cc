#include "scaler/model/sample_span.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/scaler/model/fake_job.h"

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

TEST(WindowTest, AnyTotalThatGoesBackIsOfAnotherLife) {
  using std::chrono::microseconds;
  const std::vector<std::function<void(NodeSample*)>> grow = {
      [](NodeSample* s) { s->cpu += microseconds(1); },
      [](NodeSample* s) { s->throttled += microseconds(1); },
      [](NodeSample* s) { ++s->worker.records; },
      [](NodeSample* s) { ++s->worker.minibatches; },
      [](NodeSample* s) { s->worker.computing += microseconds(1); },
      [](NodeSample* s) { s->worker.waiting_shards += microseconds(1); },
      [](NodeSample* s) { s->worker.waiting_pulls += microseconds(1); },
      [](NodeSample* s) { s->worker.waiting_pushes += microseconds(1); },
      [](NodeSample* s) { ++s->server.pulls; },
      [](NodeSample* s) { ++s->server.rows; },
      [](NodeSample* s) { ++s->server.parts; },
      [](NodeSample* s) { ++s->server.moved_bytes; },
      [](NodeSample* s) { s->server.serving += microseconds(1); },
      [](NodeSample* s) { ++s->server.peer_requests; },
      [](NodeSample* s) { s->server.peer_round_trip += microseconds(1); },
  };
  for (size_t i = 0; i < grow.size(); ++i) {
    NodeView node;
    node.samples.resize(2);
    node.samples[1].at = TimePoint() + seconds(5);
    EXPECT_TRUE(SpanSince(node, TimePoint(), seconds(1)).has_value()) << "nothing happened";
    grow[i](&node.samples[1]);
    EXPECT_TRUE(SpanSince(node, TimePoint(), seconds(1)).has_value()) << i;
    grow[i](&node.samples[0]);
    grow[i](&node.samples[0]);
    EXPECT_FALSE(SpanSince(node, TimePoint(), seconds(1)).has_value()) << i;
  }
}

TEST(WindowTest, BothEndsOfASpanAreReadings) {
  FakeJob job;
  job.Add(NodeRole::kWorker, 1);
  const TimePoint start = job.view.now;
  for (int i = 0; i < 20; ++i) job.Tick();
  const NodeView& node = job.Node("worker-0");
  const auto span = SpanBetween(node, start + seconds(5),
                                start + seconds(9) + std::chrono::milliseconds(500), seconds(4));
  ASSERT_TRUE(span.has_value());
  EXPECT_EQ(span->begin->at, start + seconds(5));
  EXPECT_EQ(span->end->at, start + seconds(9));
  EXPECT_FALSE(SpanBetween(node, start + seconds(5), start + seconds(8), seconds(4)).has_value());
}

TEST(WindowTest, WhoWaitsForServersAndWhoComputes) {
  struct Case {
    double pulls, pushes, computing;  // s/s
    bool waits;
  };
  const Case cases[] = {
      {0.5, 0.35, 0.1, true},   // both kinds of waits count
      {0.5, 0.25, 0.1, false},  // not enough
      {0.85, 0, 0.1, true},    {0, 0.85, 0.1, true},
      {0.9, 0, 0.25, false},  // another loop computes
      {1.8, 0, 0.3, true},    // two loops that wait, and one computes a little
      {0, 0, 0, false},
  };
  for (const Case& c : cases) {
    FakeJob job;
    job.Add(NodeRole::kWorker, 1,
            {.computing_us = c.computing * 1e6 / 50,
             .waiting_pulls = c.pulls,
             .waiting_pushes = c.pushes});
    for (int i = 0; i < 11; ++i) job.Tick();
    const auto span = SpanSince(job.Node("worker-0"), TimePoint(), seconds(5));
    ASSERT_TRUE(span.has_value());
    EXPECT_EQ(WaitsForServers(*span, 0.8), c.waits)
        << c.pulls << " " << c.pushes << " " << c.computing;
  }
}

TEST(WindowTest, WordsForPeople) {
  const std::vector<std::pair<Action, std::string>> actions = {
      {Action::kRestart, "restart"}, {Action::kResize, "resize"},
      {Action::kScale, "scale"},     {Action::kStopJob, "stop-job"},
      {Action::kDrain, "drain"},     {Action::kDumpStacks, "dump-stacks"}};
  for (const auto& [action, word] : actions) EXPECT_EQ(ToString(action), word);
  const std::vector<std::pair<EndCause, std::string>> causes = {
      {EndCause::kKernelOutOfMemory, "kernel out of memory"},
      {EndCause::kOwnOutOfMemory, "own out-of-memory kill"},
      {EndCause::kProgram, "program"},
      {EndCause::kPlatform, "platform"},
      {EndCause::kAsked, "asked"},
      {EndCause::kNotStarted, "not started"},
      {EndCause::kClean, "clean"}};
  for (const auto& [cause, word] : causes) EXPECT_EQ(ToString(cause), word);
}

}  // namespace
}  // namespace muster::scaler
