#include "cli/show/progress.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <string>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

JobStatus SomeStatus() {
  JobStatus status;
  status.name = "flights";
  status.state = JobState::kRunning;
  DatasetStatus& dataset = status.datasets.emplace_back();
  dataset.name = "train";
  dataset.epochs_total = 2;
  for (uint32_t epoch : {0u, 1u}) {
    const uint64_t done = epoch == 0 ? 1'000 : 250;
    dataset.epochs.push_back({.epoch = epoch,
                              .records_expected = 1'000,
                              .records_done = done,
                              .records_committed = done / 2});
  }
  return status;
}

ProgressInput SomeInput() {
  ProgressInput input;
  input.status = SomeStatus();
  input.elapsed = seconds(65);
  input.records_per_second = 100;
  input.servers_running = 1;
  input.servers_wanted = 2;
  input.workers_running = input.workers_wanted = 3;
  input.worker_restarts = 4;
  input.last_event = "worker-0 ended (SIGKILL)";
  return input;
}

TEST(ProgressTest, Texts) {
  EXPECT_EQ(DurationText(milliseconds(7'900)), "0:07");
  EXPECT_EQ(DurationText(seconds(123)), "2:03");
  EXPECT_EQ(DurationText(seconds(3'723)), "1:02:03");
}

TEST(ProgressTest, WhyTheJobGetsNowhereComesFirst) {
  ProgressInput input = SomeInput();
  input.status->reason = "ps-0 runs, but has not called for 14 s";
  EXPECT_EQ(ProgressBlock(input, 0)[1], "  ps-0 runs, but has not called for 14 s");
  EXPECT_THAT(ProgressLine(input), HasSubstr("running; ps-0 runs, but has not called for 14 s;"));
  input.status->state = JobState::kFailed;
  EXPECT_THAT(ProgressLine(input), Not(HasSubstr("has not called"))) << "the summary says it";
}

TEST(ProgressTest, RateIsOverTheLastSecondsAlone) {
  RateMeter meter;
  TimePoint now{seconds(1)};
  EXPECT_EQ(meter.PerSecond(), 0);
  uint64_t count = 0;
  for (int i = 0; i < 60; ++i) {
    meter.Add(now, count);
    now += seconds(1);
    count += 10;
  }
  EXPECT_NEAR(meter.PerSecond(), 10, 0.01);
  for (int i = 0; i < 12; ++i) {
    meter.Add(now, count);
    now += seconds(1);
    count += 500;
  }
  EXPECT_NEAR(meter.PerSecond(), 500, 0.01);
  meter.Add(now, 5);
  EXPECT_EQ(meter.PerSecond(), 0) << "a replay took records back";
}

TEST(ProgressTest, EpochsThatAreNotListedCount) {
  ProgressInput input = SomeInput();
  DatasetStatus& dataset = input.status->datasets[0];
  dataset.epochs_total = 5'000;
  dataset.omitted_records_expected = 4'998'000;
  dataset.omitted_records_done = 3'000'000;
  dataset.epochs[0].epoch = 3'000;
  dataset.epochs[1].epoch = 3'001;
  EXPECT_EQ(TotalsOf(*input.status).expected, 5'000'000u);
  EXPECT_EQ(TotalsOf(*input.status).done, 3'001'250u);
  EXPECT_THAT(ProgressLine(input), HasSubstr("train epoch 3002/5000"));
}

TEST(ProgressTest, BlockShowsWhatMatters) {
  const std::vector<std::string> lines = ProgressBlock(SomeInput(), 200);
  ASSERT_THAT(lines, SizeIs(4));
  // 750 records are left at 100 a second.
  EXPECT_THAT(lines[0], AllOf(HasSubstr("flights"), HasSubstr("running"), HasSubstr("1:05"),
                              HasSubstr("100 records/s"), HasSubstr("0:07 left")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("epoch 2/2"), HasSubstr("25.0 %"), HasSubstr("250 / 1,000"),
                              HasSubstr("125 committed")));
  EXPECT_THAT(lines[2],
              AllOf(HasSubstr("ps 1/2"), HasSubstr("workers 3/3"), HasSubstr("workers 4")));
  EXPECT_THAT(lines[3], HasSubstr("SIGKILL"));
  EXPECT_THAT(ProgressBlock(SomeInput(), 30), Each(SizeIs(::testing::Le(30u))));
}

TEST(ProgressTest, ATopicHasAWholeOnlyIfItsEndIsKnown) {
  ProgressInput input = SomeInput();
  DatasetStatus& dataset = input.status->datasets[0];
  dataset.stream = StreamStatus{.topic = "clicks", .open = true};
  dataset.stream->partitions = {{.partition = 0}};
  EXPECT_THAT(ProgressLine(input),
              AllOf(HasSubstr("epoch 2/2 250 records, 750 behind"), HasSubstr("- left")));
  EXPECT_THAT(ProgressBlock(input, 0)[1],
              AllOf(HasSubstr("250 records, 750 behind, 125 committed"), Not(HasSubstr("%"))));
  dataset.stream->partitions[0].end = 1'000;
  EXPECT_THAT(ProgressLine(input),
              AllOf(HasSubstr("25.0 % (250 of 1,000)"), HasSubstr("0:07 left")));
  dataset.stream->open = false;
  dataset.stream->partitions[0].end.reset();
  EXPECT_THAT(ProgressLine(input), HasSubstr("25.0 % (250 of 1,000)")) << "all of it is cut";
}

TEST(ProgressTest, AGroupHasALine) {
  ProgressInput input = SomeInput();
  input.status->group = GroupStatus{.step = 12, .global_batch = 50, .members = 2, .waits = ""};
  EXPECT_THAT(ProgressBlock(input, 0), Contains("  group: step 12, 2 members (of 0 to 0), about "
                                                "120 steps/min"));
  EXPECT_THAT(ProgressLine(input), HasSubstr("; group: step 12, 2 members"));
  for (const std::string& line : ProgressBlock(input, 30)) EXPECT_LE(line.size(), 30u);
}

TEST(ProgressTest, LineSaysTheSame) {
  ProgressInput input = SomeInput();
  EXPECT_THAT(ProgressLine(input), AllOf(HasSubstr("epoch 2/2 25.0 % (250 of 1,000)"),
                                         HasSubstr("ps 1/2"), Not(HasSubstr("silent"))));
  input.master_silent = true;
  EXPECT_THAT(ProgressLine(input), HasSubstr("silent"));
  input.status.reset();
  input.waiting_for = "indexing";
  EXPECT_THAT(ProgressLine(input),
              AllOf(HasSubstr("waiting for the master"), HasSubstr("indexing")));
}

/// A job as it was: large numbers, two datasets, a model that is overfitting.
ProgressInput LargeInput() {
  ProgressInput input = SomeInput();
  input.status->datasets.push_back(input.status->datasets[0]);
  input.status->datasets[1].name = "test";
  for (DatasetStatus& dataset : input.status->datasets) {
    dataset.epochs_total = 80;
    dataset.epochs[1] = {.epoch = 79,
                         .records_expected = 33'677'600,
                         .records_done = 12'345'678,
                         .records_committed = 11'222'333,
                         .shards = {.failed = 12}};
  }
  input.records_per_second = 187'654;
  input.status->metric_trends = {
      {.dataset = "train",
       .metric = "logloss",
       .epoch = 79,
       .latest = 0.3123,
       .previous = 0.3124,
       .best = 0.3123,
       .best_epoch = 79},
      {.dataset = "test",
       .metric = "auc",
       .epoch = 78,
       .latest = 0.7112,
       .epoch_over = true,
       .previous = 0.7121,
       .best = 0.8163,
       .best_epoch = 2,
       .remark = "test auc is 0.7112; its best was 0.8163 after epoch 3. "
                 "The last 76 epochs were clearly worse"},
      {.dataset = "test", .metric = "logloss", .epoch = 78, .latest = 0.9}};
  return input;
}

TEST(ProgressTest, BlockShowsMetricsAndWhatIsToBeSaidOfThem) {
  EXPECT_THAT(
      ProgressBlock(LargeInput(), 200),
      ::testing::IsSupersetOf(
          {"    epoch 80 so far: logloss 0.3123 (before 0.3124, best so far)",
           "    epoch 79: auc 0.7112 (before 0.7121, best 0.8163 in epoch 3), logloss 0.9",
           "  test auc is 0.7112; its best was 0.8163 after epoch 3. The last 76 epochs were "
           "clearly worse"}));
  EXPECT_THAT(ProgressLine(LargeInput()),
              AllOf(HasSubstr("; train in epoch 80 so far: logloss 0.3123"),
                    HasSubstr("; test in epoch 79: auc 0.7112 (before 0.7121, best 0.8163 in "
                              "epoch 3), logloss 0.9; test auc is 0.7112;")));
}

TEST(ProgressTest, ANarrowTerminalNeverShowsAPartOfANumber) {
  // Every word that is there without a limit, and what stands for those that are missing.
  std::set<std::string> words = {"..."};
  const auto words_of = [](const std::vector<std::string>& lines) {
    std::set<std::string> found;
    for (const std::string& line : lines) {
      std::istringstream stream(line);
      for (std::string word; stream >> word;) {
        while (word.ends_with(',') || word.ends_with(';')) word.pop_back();
        found.insert(word);
      }
    }
    return found;
  };
  for (const std::string& word : words_of(ProgressBlock(LargeInput(), 1'000))) words.insert(word);
  for (size_t columns = 24; columns < 140; ++columns) {
    const std::vector<std::string> lines = ProgressBlock(LargeInput(), columns);
    for (const std::string& line : lines) EXPECT_LE(line.size(), columns) << line;
    for (const std::string& word : words_of(lines)) {
      EXPECT_TRUE(words.contains(word)) << word << " in " << columns;
    }
  }
  EXPECT_THAT(
      ProgressBlock(LargeInput(), 79),
      ElementsAre("flights  running  1:05  187,654 records/s  3:47 left",
                  "  train        epoch 80/80  36.7 %, 12 FAILED shards",
                  "    epoch 80 so far: logloss 0.3123 (before 0.3124, best so far)",
                  "  test         epoch 80/80  36.7 %, 12 FAILED shards",
                  "    epoch 79: auc 0.7112 (before 0.7121, best 0.8163 in epoch 3), logloss 0.9",
                  "  test auc is 0.7112; its best was 0.8163 after epoch 3. The last 76 epochs ...",
                  "  ps 1/2  workers 3/3  restarts: master 0, scaler 0, ps 0, workers 4",
                  "  last: worker-0 ended (SIGKILL)"));
  EXPECT_THAT(
      ProgressBlock(LargeInput(), 39),
      ElementsAre("flights  running  1:05  3:47 left", "  train        epoch 80/80  36.7 %",
                  "    epoch 80 so far: logloss 0.3123", "  test         epoch 80/80  36.7 %",
                  "    epoch 79: auc 0.7112", "  test auc is 0.7112; its best was ...",
                  "  ps 1/2  workers 3/3", "  last: worker-0 ended (SIGKILL)"));
}

class DisplayTest : public ::testing::Test {
 protected:
  DisplayTest() { EXPECT_EQ(::pipe(pipe_), 0); }
  ~DisplayTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::string Written() {
    char buffer[1 << 14];
    // A mark, so that reading never blocks.
    EXPECT_EQ(::write(pipe_[1], "$", 1), 1);
    const ssize_t got = ::read(pipe_[0], buffer, sizeof(buffer));
    return std::string(buffer, static_cast<size_t>(got) - 1);
  }
  int pipe_[2];
  TimePoint now_{seconds(1)};
};

TEST_F(DisplayTest, LinesEveryFewSecondsWithoutEscapes) {
  ProgressDisplay display(ProgressDisplay::Mode::kLines, pipe_[1]);
  display.Draw(SomeInput(), now_);
  EXPECT_THAT(Written(), HasSubstr("25.0 %"));
  display.Draw(SomeInput(), now_ + milliseconds(500));
  EXPECT_EQ(Written(), "");
  display.Draw(SomeInput(), now_ + seconds(2));
  const std::string line = Written();
  EXPECT_THAT(line, HasSubstr("25.0 %"));
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
}

TEST_F(DisplayTest, BlockIsRedrawnInPlaceAndLeavesNothing) {
  ProgressDisplay display(ProgressDisplay::Mode::kBlock, pipe_[1]);
  display.Draw(SomeInput(), now_);
  EXPECT_THAT(Written(), Not(HasSubstr("\x1b")));
  display.Draw(SomeInput(), now_ + seconds(1));
  EXPECT_THAT(Written(), HasSubstr("\x1b[4A"));
  display.Clear();
  EXPECT_THAT(Written(), HasSubstr("\x1b[4A"));
  display.Clear();
  EXPECT_EQ(Written(), "");
}

TEST_F(DisplayTest, AReaderThatDoesNotReadHoldsNobodyUp) {
  ProgressDisplay display(ProgressDisplay::Mode::kLines, pipe_[1]);
  const std::string line(1000, 'x');
  for (int i = 0; i < 1000; ++i) display.Print(line);  // more than any pipe holds
}

TEST_F(DisplayTest, OffAndNotATerminal) {
  ProgressDisplay display(ProgressDisplay::Mode::kOff, pipe_[1]);
  display.Draw(SomeInput(), now_);
  display.Print("x");
  EXPECT_EQ(Written(), "");
  EXPECT_EQ(ProgressDisplay::ModeOf(pipe_[1]), ProgressDisplay::Mode::kLines);
}

}  // namespace
}  // namespace muster
