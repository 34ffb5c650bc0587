#include "scaler/decision/status_watch.h"

#include <gmock/gmock.h>

#include "scaler/decision/event_drafts.h"

namespace muster::scaler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StatusWatchTest : public ::testing::Test {
 protected:
  StatusWatchTest() {
    status_.state = JobState::kRunning;
    status_.nodes.resize(3);
    status_.nodes[0].name = status_.nodes[0].role = "master";
    status_.nodes[1].name = status_.nodes[1].role = "scaler";
    status_.nodes[2].name = "worker-0";
    for (NodeStatus& node : status_.nodes) node.start = 1;
    status_.datasets = {{.name = "train", .epochs = {Epoch(0), Epoch(1), Epoch(2), Epoch(3)}}};
  }
  static EpochStatus Epoch(uint32_t number) {
    return {.epoch = number, .metrics = {{"loss", 0.5}}, .shards = {.total = 4, .todo = 4}};
  }
  void End(uint32_t epoch) {
    status_.datasets[0].epochs[epoch].shards = {.total = 4, .committed = 4};
  }
  StatusWatch Watch() {
    return {{.epochs_apart = seconds(10)}, [this](rest::Event event) {
              event.wall_us = 5'000'000;
              events_.push_back(event);
              return event;
            }};
  }
  void Answer(StatusWatch* watch) { watch->OnStatus(status_, now_); }
  /// What was told since the last call: "kind target: because".
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (; taken_ < events_.size(); ++taken_) {
      const rest::Event& event = events_[taken_];
      told.push_back(event.kind + " " + event.target + ": " + event.because);
    }
    return told;
  }

  JobStatus status_;
  TimePoint now_ = TimePoint(seconds(100));
  std::vector<rest::Event> events_;
  size_t taken_ = 0;
};

TEST_F(StatusWatchTest, EndsOfMasterAndScalerAreToldOnce) {
  StatusWatch watch = Watch();
  status_.nodes[2].start = 7;  // its end is the keeper's to tell
  Answer(&watch);
  EXPECT_THAT(Told(), IsEmpty());
  status_.nodes[0].last_exit = "SIGKILL";
  Answer(&watch);
  EXPECT_THAT(Told(), IsEmpty()) << "not started again yet";
  status_.nodes[0].start = 2;
  Answer(&watch);
  Answer(&watch);
  EXPECT_THAT(Told(),
              ElementsAre("exit master: the master ended (SIGKILL); muster run started it again"));
  status_.nodes[0].start = 4;
  status_.nodes[0].last_exit = "exit 1";
  Answer(&watch);
  EXPECT_THAT(Told(), ElementsAre("exit master: the master ended 2 times (exit 1); muster run "
                                  "started it again"));
}

TEST_F(StatusWatchTest, TheNextScalerTellsTheEndOfTheOneBefore) {
  StatusWatch first = Watch();
  Answer(&first);
  status_.nodes[0].start = 2;
  Answer(&first);
  EXPECT_THAT(Told(), ElementsAre("exit master: the master ended; muster run started it again"));
  StatusWatch second = Watch();
  second.Adopt(events_, seconds(1));
  status_.nodes[1].start = 2;
  status_.nodes[1].last_exit = "SIGKILL";
  Answer(&second);
  EXPECT_THAT(Told(),
              ElementsAre("exit scaler: the scaler ended (SIGKILL); muster run started it again"));
  StatusWatch of_another_run = Watch();
  of_another_run.Adopt(events_, seconds(6));
  Answer(&of_another_run);
  EXPECT_EQ(Told().size(), 2u) << "starts count from 1 in each run";
}

TEST_F(StatusWatchTest, ASilentMasterIsToldOnceAndItsReturn) {
  StatusWatch watch = Watch();
  watch.OnTime(now_ + seconds(60));
  EXPECT_THAT(Told(), IsEmpty()) << "it has not begun to answer";
  Answer(&watch);
  watch.OnTime(now_ + milliseconds(1'999));
  EXPECT_THAT(Told(), IsEmpty());
  watch.OnTime(now_ + seconds(2));
  watch.OnTime(now_ + seconds(3));
  EXPECT_THAT(Told(), ElementsAre("note master: the master does not answer; workers go on with the "
                                  "shards that they hold"));
  now_ += seconds(12);
  Answer(&watch);
  EXPECT_THAT(Told(), ElementsAre("note master: the master answers again, after 12 s"));
  status_.state = JobState::kSucceeded;
  Answer(&watch);
  watch.OnTime(now_ + seconds(60));
  EXPECT_THAT(Told(), IsEmpty()) << "a master ends with its job";
}

TEST_F(StatusWatchTest, EpochsThatEndAreToldSeveralAtOnceIfTheyAreShort) {
  StatusWatch watch = Watch();
  End(0);
  Answer(&watch);
  EXPECT_THAT(Told(), IsEmpty()) << "ended before this run";
  End(1);
  Answer(&watch);
  EXPECT_THAT(Told(), ElementsAre("note train: epoch 2 of train is committed"));
  EXPECT_EQ(FigureOf(events_.back(), kEpochFigure), 2);
  EXPECT_EQ(FigureOf(events_.back(), "loss"), 0.5);
  End(2);
  status_.datasets[0].epochs[2].shards = {.total = 4, .committed = 3, .failed = 1};
  now_ += seconds(9);
  Answer(&watch);
  EXPECT_THAT(Told(), IsEmpty());
  End(3);
  now_ += seconds(1);
  Answer(&watch);
  Answer(&watch);
  EXPECT_THAT(Told(), ElementsAre("note train: epochs 3 to 4 of train are over, but not "
                                  "committed: 1 of 8 shards FAILED"));
}

TEST_F(StatusWatchTest, TheLastEpochIsToldAtOnceAndWhatFailedOfIt) {
  StatusWatch watch = Watch();
  Answer(&watch);
  End(0);
  Answer(&watch);
  EXPECT_EQ(Told().size(), 1u);
  End(1);
  End(2);
  status_.datasets[0].epochs[3].shards = {.total = 4, .committed = 3, .failed = 1};
  status_.state = JobState::kFailed;
  Answer(&watch);
  EXPECT_THAT(Told(), ElementsAre("note train: epochs 2 to 4 of train are over, but not "
                                  "committed: 1 of 12 shards FAILED"));
}

TEST_F(StatusWatchTest, AnotherScalerGoesOnWithTheEpochsThatWereTold) {
  StatusWatch first = Watch();
  Answer(&first);
  End(0);
  Answer(&first);
  StatusWatch second = Watch();
  second.Adopt(events_, seconds(1));
  Told();
  End(1);
  Answer(&second);
  EXPECT_THAT(Told(), ElementsAre("note train: epoch 2 of train is committed"));
}

TEST_F(StatusWatchTest, TopicsHaveNoEpochsThatEnd) {
  status_.datasets[0].stream.emplace();
  StatusWatch watch = Watch();
  Answer(&watch);
  End(0);
  Answer(&watch);
  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace muster::scaler
