#include "cli/steer/top_view.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/scaler/rest/fake_job_api.h"
#include "tests/support/status_matchers.h"

namespace muster::steer {
namespace {

using scaler::rest::Node;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr TimePoint kStart{seconds(100)};
constexpr WallTime kWall{seconds(1'767'225'612)};  // 12 s after the stand-in's last word

TopReading Reading(int after_s = 0) {
  scaler::rest::testing::FakeJobApi job;
  job.AddEvent();
  TopReading reading{.job = job.GetJob().value(),
                     .nodes = job.Nodes()->nodes,
                     .events = job.Events(0, 10)->events,
                     .at = kStart + seconds(after_s)};
  for (Node& node : reading.nodes) {
    const uint64_t passed_s = static_cast<uint64_t>(after_s);
    if (node.worker) node.worker->times.compute_us += 750'000 * passed_s;
    if (node.worker) node.worker->times.wait_pull_us += 250'000 * passed_s;
    if (node.server) node.server->counters.pulls += 100 * passed_s;
    if (node.server) node.server->counters.service_us += 50'000 * passed_s;
  }
  return reading;
}

Node* Find(TopReading* reading, const std::string& name) {
  return &*std::ranges::find(reading->nodes, name, &Node::name);
}

std::vector<TopLine> Shown(const TopView& view, TopSize size = {}) {
  return view.Lines(kStart + seconds(10), kWall, size);
}

/// The first line with that text.
TopLine LineWith(const std::vector<TopLine>& lines, const std::string& text) {
  for (const TopLine& line : lines) {
    if (line.text.find(text) != std::string::npos) return line;
  }
  return {};
}

TEST(TopViewTest, RatesAreOfTheTimeBetweenReadings) {
  TopView view;
  EXPECT_THAT(Shown(view), IsEmpty());
  view.Add(Reading());
  EXPECT_THAT(LineWith(Shown(view), "worker-0").text, HasSubstr("  -  ")) << "no rate of one";
  view.Add(Reading(2));
  const std::vector<TopLine> lines = Shown(view);
  EXPECT_THAT(lines[0].text,
              AllOf(HasSubstr("flights  running"), HasSubstr("20.0 %"), HasSubstr("4,000 / 20,000"),
                    HasSubstr("197 records/s"), HasSubstr("1:21 left")));
  EXPECT_THAT(LineWith(lines, "worker-0").text,
              AllOf(HasSubstr("75 %"), HasSubstr("25 %"), HasSubstr("0.75 / 1"),
                    HasSubstr("200 MiB / 256 MiB, 78 %")));
  EXPECT_THAT(LineWith(lines, "ps-0").text,
              AllOf(HasSubstr("100"), HasSubstr("5 %"), HasSubstr("500 us"), HasSubstr("32 / 32")));
  EXPECT_THAT(LineWith(lines, "#1").text, HasSubstr("decision ps-0"));
}

TEST(TopViewTest, AGroupHasALine) {
  TopReading reading = Reading();
  reading.job.group = GroupStatus{.step = 12, .members = 2, .waits = "nobody has come"};
  TopView view;
  view.Add(reading);
  EXPECT_EQ(LineWith(Shown(view), "group:").text,
            "  group: step 12, 2 members, waits: nobody has come");
  EXPECT_LE(LineWith(Shown(view, {.columns = 30}), "group:").text.size(), 30u);
}

TEST(TopViewTest, MasterAndScalerHaveRows) {
  TopReading reading = Reading();
  Node scaler = *Find(&reading, "master");
  scaler.name = scaler.role = "scaler";
  scaler.state = NodeState::kExited;
  reading.nodes.push_back(scaler);
  TopView view;
  view.Add(reading);
  const std::vector<TopLine> lines = Shown(view);
  EXPECT_EQ(LineWith(lines, "CONTROL").tone, Tone::kHeading);
  EXPECT_THAT(LineWith(lines, "master ").text,
              AllOf(HasSubstr("running"), HasSubstr("0.75"), HasSubstr("200 MiB")));
  EXPECT_EQ(LineWith(lines, "scaler ").tone, Tone::kBad);
  std::erase_if(reading.nodes, [](const Node& node) { return !node.worker && !node.server; });
  TopView without;
  without.Add(reading);
  EXPECT_EQ(LineWith(Shown(without), "CONTROL").text, "");
}

TEST(TopViewTest, AnotherProcessHasNoRateYet) {
  TopView view;
  view.Add(Reading());
  TopReading next = Reading(2);
  Find(&next, "worker-0")->start = 2;
  Find(&next, "worker-0")->worker->times.compute_us += 1'000'000;
  view.Add(std::move(next));
  EXPECT_THAT(LineWith(Shown(view), "worker-0").text, HasSubstr("  -  "));
  EXPECT_THAT(LineWith(Shown(view), "worker-1").text, HasSubstr("75 %"));
}

TEST(TopViewTest, WhatIsOldOrWrongIsMarked) {
  TopReading reading = Reading();
  reading.job.master_reachable = false;
  reading.job.reason = "out of luck";
  Find(&reading, "worker-0")->heartbeat_age_ms = 7'000;
  Find(&reading, "worker-1")->usage->memory_bytes = 250u << 20;
  Find(&reading, "ps-0")->state = NodeState::kLost;
  TopView view;
  view.Add(reading);
  std::vector<TopLine> lines = Shown(view);
  EXPECT_EQ(LineWith(lines, "out of luck").tone, Tone::kBad);
  EXPECT_EQ(LineWith(lines, "the master does not answer: progress is 12 s old").tone, Tone::kBad);
  EXPECT_THAT(LineWith(lines, "worker-0").text, HasSubstr("silent 7 s"));
  EXPECT_EQ(LineWith(lines, "worker-0").tone, Tone::kBad);
  EXPECT_EQ(LineWith(lines, "worker-1").tone, Tone::kBad);
  EXPECT_EQ(LineWith(lines, "ps-0 ").tone, Tone::kBad);
  EXPECT_EQ(LineWith(lines, "ps-1").tone, Tone::kPlain);
  view.SetAway("nothing answers");
  lines = Shown(view);
  EXPECT_EQ(LineWith(lines, "all this is 10 s old: nothing answers").tone, Tone::kBad);
  EXPECT_EQ(LineWith(lines, "ps-1").tone, Tone::kOld);
  view.Add(Reading(2));
  EXPECT_EQ(LineWith(Shown(view), "does not answer").text, "");
}

TEST(TopViewTest, FitsAnyTerminal) {
  TopReading reading = Reading();
  const Node worker = *Find(&reading, "worker-1");
  for (int i = 2; i < 40; ++i) {
    reading.nodes.push_back(worker);
    reading.nodes.back().name = fmt::format("worker-{}", i);
  }
  for (uint64_t i = 2; i <= 20; ++i) {
    reading.events.push_back(reading.events[0]);
    reading.events.back().id = i;
  }
  reading.events.back().because = "an \x1b[2J escape\nand a line";
  TopView view;
  view.Add(reading);
  const std::vector<TopLine> all = Shown(view, {});
  EXPECT_THAT(all, SizeIs(2 + 1 + 41 + 1 + 3 + 1 + 2 + 1 + 20));
  EXPECT_THAT(all,
              Each(Field(&TopLine::text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))))));
  for (size_t rows = 1; rows < 80; ++rows) {
    for (const size_t columns : {1, 40, 80, 300}) {
      const std::vector<TopLine> lines = Shown(view, {.columns = columns, .rows = rows});
      ASSERT_LE(lines.size(), rows);
      for (const TopLine& line : lines) ASSERT_LE(line.text.size(), columns);
    }
  }
  const std::vector<TopLine> lines = Shown(view, {.columns = 200, .rows = 24});
  EXPECT_EQ(lines.size(), 24u) << "the room is used";
  EXPECT_NE(LineWith(lines, "#20").text, "") << "the newest event is there";
  EXPECT_NE(LineWith(lines, "ps-1").text, "");
  EXPECT_NE(LineWith(lines, "worker-0").text, "");
  EXPECT_THAT(LineWith(lines, "more").text, HasSubstr("... and"));
}

TEST(TopViewTest, MetricsOfEachDatasetAndWhatIsToBeSaidOfThem) {
  TopReading reading = Reading();
  reading.job.metric_trends = {{.dataset = "train", .metric = "loss", .epoch = 9, .latest = 0.25},
                               {.dataset = "test",
                                .metric = "auc",
                                .epoch = 8,
                                .latest = 0.711,
                                .epoch_over = true,
                                .previous = 0.712,
                                .best = 0.816,
                                .best_epoch = 2,
                                .remark = "test auc is 0.711; its best was 0.816"},
                               {.dataset = "test", .metric = "loss", .epoch = 8, .latest = 0.5}};
  TopView view;
  view.Add(reading);
  std::vector<TopLine> lines = Shown(view, {.columns = 80, .rows = 24});
  EXPECT_EQ(lines[1].text, "  train epoch 10 so far: loss 0.25");
  EXPECT_EQ(lines[2].text,
            "  test epoch 9: auc 0.711 (before 0.712, best 0.816 in epoch 3), loss 0.5");
  EXPECT_EQ(lines[3].text, "  test auc is 0.711; its best was 0.816");
  EXPECT_EQ(lines[3].tone, Tone::kBad);
  reading.job.metric_trends.clear();
  for (int i = 0; i < 9; ++i) {
    reading.job.metric_trends.push_back({.dataset = fmt::format("d{}", i), .metric = "loss"});
  }
  view.Add(reading);
  lines = Shown(view, {.columns = 80, .rows = 24});
  EXPECT_EQ(lines[4].text, "... and 6 more");
}

TEST(TopViewTest, ANarrowTerminalLeavesOutWholeFieldsAndCountsColumns) {
  TopView view;
  view.Add(Reading());
  view.Add(Reading(2));
  std::vector<TopLine> lines = Shown(view, {.columns = 80, .rows = 24});
  EXPECT_EQ(lines[0].text,
            "flights  running  20.0 %  197 records/s  1:21 left  4,000 / 20,000 records");
  EXPECT_EQ(LineWith(lines, "WORKER").text,
            "WORKER    STATE    RECORDS/S  COMPUTING  CPUS      MEMORY  +4 columns");
  EXPECT_THAT(LineWith(lines, "worker-0").text,
              AllOf(HasSubstr("75 %"), HasSubstr("200 MiB / 256 MiB, 78 %")));
  EXPECT_THAT(LineWith(lines, "SERVER").text, HasSubstr("  +"));
  lines = Shown(view, {.columns = 40, .rows = 24});
  EXPECT_EQ(lines[0].text, "flights  running  20.0 %  1:21 left");
  EXPECT_EQ(LineWith(lines, "WORKER").text, "WORKER    STATE    RECORDS/S  +7 columns");
}

TEST(TopViewTest, WorkersThatWereSentAwayAreCounted) {
  TopReading reading = Reading();
  Find(&reading, "worker-1")->state = NodeState::kFinished;
  TopView view;
  view.Add(reading);
  EXPECT_EQ(LineWith(Shown(view), "worker-1").text, "");
  EXPECT_EQ(LineWith(Shown(view), "1 worker left").tone, Tone::kOld);
  Find(&reading, "worker-0")->state = NodeState::kFinished;
  view.Add(reading);
  EXPECT_NE(LineWith(Shown(view), "worker-0").text, "") << "the job is over";
  EXPECT_NE(LineWith(Shown(view), "worker-1").text, "");
  EXPECT_EQ(LineWith(Shown(view), " left: ").text, "");
}

}  // namespace
}  // namespace muster::steer
