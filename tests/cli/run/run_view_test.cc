#include "cli/run/run_view.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/descriptors.h"
#include "tests/support/fake_clock.h"

namespace muster {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MasterEvent Told(const FakeClock& clock, std::string kind, std::string node) {
  return {.wall_us = static_cast<uint64_t>(clock.Wall().count()),
          .kind = std::move(kind),
          .node = std::move(node),
          .text = "why"};
}

/// A view whose lines go into a pipe.
class RunViewTest : public ::testing::Test {
 protected:
  RunViewTest() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = OwnedFd(ends[0]);
    write_ = OwnedFd(ends[1]);
  }
  RunView View(bool caller_tells_ends) {
    return RunView({.job = "ads",
                    .servers = 1,
                    .workers = 2,
                    .progress = ProgressDisplay::Mode::kLines,
                    .progress_fd = write_.get(),
                    .caller_tells_ends = caller_tells_ends},
                   &clock_);
  }
  std::string Shown() const {
    char text[4096];
    const ssize_t bytes = ::read(read_.get(), text, sizeof(text));
    return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : "";
  }
  MasterLink::Answer Answer(std::vector<MasterEvent> events) const {
    MasterLink::Answer answer{.asked_at = clock_.Now(), .events = std::move(events)};
    answer.status.nodes.push_back({.name = "ps-0", .role = "ps", .restarts = 3});
    return answer;
  }

  FakeClock clock_;
  OwnedFd read_;
  OwnedFd write_;
};

TEST_F(RunViewTest, ItShowsEventsAndProgress) {
  RunView view = View(false);
  view.Draw({.waiting_for = "reads"});
  EXPECT_THAT(Shown(), HasSubstr("waiting for the master, 0:00 (reads)"));
  view.OnAnswer(
      Answer({Told(clock_, "node-exited", "worker-1"), Told(clock_, "restart", "master")}));
  EXPECT_EQ(Shown(), "  node-exited worker-1: why\n  restart master: why\n");
  clock_.Advance(std::chrono::seconds(5));
  view.Draw({.workers_planned = 7, .master_restarts = 1, .scaler_restarts = 2});
  const std::string line = Shown();
  EXPECT_THAT(line, HasSubstr("ps 1/1  workers 0/7"));
  EXPECT_THAT(line, HasSubstr("restarts: master 1, scaler 2, ps 3, workers 0"));
  EXPECT_THAT(line, HasSubstr("the master is silent"));
}

TEST_F(RunViewTest, WhatTheCallerTellsIsNotToldTwice) {
  RunView view = View(true);
  view.OnAnswer(Answer({Told(clock_, "restart", "master"), Told(clock_, "note", "ps-0")}));
  EXPECT_EQ(Shown(), "  note ps-0: why\n");
  view.OnNote({.text = "the master is killed\nits log"});
  EXPECT_EQ(Shown(), "the master is killed\nits log\n");
}

TEST_F(RunViewTest, OneAnswerHasTwentyLines) {
  RunView view = View(false);
  view.OnAnswer(Answer(std::vector<MasterEvent>(30, Told(clock_, "note", ""))));
  const std::string shown = Shown();
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 20);
}

TEST_F(RunViewTest, DecisionsAreShownOnceTheyAreOfThisRun) {
  RunView view = View(false);
  scaler::rest::Event event;
  event.id = 7;
  event.kind = "decision";
  event.target = "worker-1";
  view.OnDecisions({event});
  EXPECT_THAT(Shown(), IsEmpty()) << "of a former run";
  event.id = 8;
  event.wall_us = static_cast<uint64_t>(clock_.Wall().count());
  view.OnDecisions({event});
  EXPECT_THAT(Shown(), HasSubstr("#8 decision worker-1"));
  EXPECT_EQ(view.decisions_shown(), 8u);
}

TEST_F(RunViewTest, TheDashboardIsShownOnceAndWithoutItsTokenInALog) {
  RunView view = View(false);
  EXPECT_EQ(view.WantsDashboard(), AddressFor::kLog);
  view.OnDashboard("");
  EXPECT_THAT(Shown(), IsEmpty());
  EXPECT_NE(view.WantsDashboard(), std::nullopt);
  view.OnDashboard("http://here/");
  EXPECT_EQ(Shown(), "dashboard: http://here/\n");
  EXPECT_EQ(view.WantsDashboard(), std::nullopt);
}

TEST_F(RunViewTest, TheSummaryHasWhatWasSeen) {
  RunView view = View(false);
  clock_.Advance(std::chrono::seconds(3));
  const SummaryInput early = view.Finish({.reason = "why"});
  EXPECT_EQ(early.job, "ads");
  EXPECT_EQ(early.outcome.reason, "why");
  EXPECT_EQ(early.elapsed, std::chrono::seconds(3));
  EXPECT_FALSE(early.status.has_value());
  view.OnAnswer(Answer({}));
  const SummaryInput late = view.Finish({});
  EXPECT_EQ(late.server_restarts, 3u);
  EXPECT_TRUE(late.status.has_value());
}

}  // namespace
}  // namespace muster
