#include "scaler/service/live_job_api.h"

#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <thread>

#include "tests/admin/small_master.h"
#include "tests/scaler/service/fake_host.h"
#include "tests/scaler/service/fake_master.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kPatience{20};

/// Takes every order and remembers it.
class RecordingTaker final : public OrderTaker {
 public:
  explicit RecordingTaker(EventLog* log) : log_(log) {}
  absl::StatusOr<rest::Event> Take(const Wish& wish) override {
    std::string what = ActionName(wish.order) + " " + TargetOf(wish.order);
    if (const auto* retry = std::get_if<RetryShards>(&wish.order)) {
      what += " " + std::to_string(retry->ids.size());
    }
    return Note(what);
  }
  void FailOrder(uint64_t event_id, const std::string& why) override {
    Note("failed " + std::to_string(event_id) + ": " + why);
  }
  rest::Samples GiveSamples(const rest::SampleQuery&) override { return {.times_us = {7}}; }

  std::vector<std::string> taken;

 private:
  rest::Event Note(const std::string& what) {
    taken.push_back(what);
    return log_->Append({.kind = "action", .target = "job", .action = what});
  }
  EventLog* const log_;
};

/// A real master of the job "id-1", whose shards no worker takes.
class LiveJobApiTest : public ::testing::Test {
 protected:
  LiveJobApiTest() {
    log_ = EventLog::Open(folder_.path(), {}, &clock_).value();
    taker_.emplace(log_.get());
    Picture picture;
    picture.job.name = "flights";
    picture.job.master_reachable = true;
    picture.nodes.nodes.resize(2);
    picture.nodes.nodes[0].name = "ps-0";
    picture.nodes.nodes[1].name = "worker-0";
    board_.Hang(std::move(picture));
    api_.emplace(LiveJobApi::Options{.host = &host_, .order_deadline = kPatience}, &board_,
                 log_.get(), master_.get(), &calls_, &*taker_);
  }
  ~LiveJobApiTest() override {
    over_ = true;
    owner_.join();
  }

  muster::testing::TempDir folder_;
  const SystemClock clock_;
  muster::testing::SmallMaster server_{3};
  const std::unique_ptr<AdminClient> master_ = server_.Client({"id-1", "flights"}, WhenAway::kFail);
  testing::FakeHost host_;
  std::unique_ptr<EventLog> log_;
  std::optional<RecordingTaker> taker_;
  PictureBoard board_;
  CallQueue calls_;
  std::optional<LiveJobApi> api_;
  std::atomic<bool> over_ = false;
  std::thread owner_{[this] {
    while (!over_) {
      calls_.RunWaiting();
      std::this_thread::yield();
    }
  }};
};

TEST_F(LiveJobApiTest, StateIsReadFromTheBoard) {
  const std::shared_ptr<const rest::Picture> picture = api_->Look().value();
  EXPECT_EQ(picture->job.name, "flights");
  EXPECT_EQ(picture->nodes.nodes.size(), 2u);
  EXPECT_EQ(rest::FindNode(*picture, "ps-0").value()->name, "ps-0");
  EXPECT_THAT(rest::FindNode(*picture, "ps-7"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-0, worker-0")));
  log_->Append({.kind = "note"});
  EXPECT_EQ(api_->Look().value()->job.last_event_id, 1u) << "newer than the picture";
}

TEST_F(LiveJobApiTest, ShardsAndPartitionsAreTheMasters) {
  EXPECT_EQ(api_->MapOfShards(0, 0)->runs.size(), 1u);
  EXPECT_EQ(api_->MapOfShards(0, 0)->shards, 2u);
  EXPECT_THAT(api_->MapOfShards(3, 0).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("dataset 3")));
  EXPECT_EQ(api_->Shards({})->total, 0u);
  EXPECT_EQ(api_->Partitions(1, 1)->partitions.size(), 1u);
  EXPECT_EQ(api_->Partitions(0, 10)->total, 3u);
}

/// A master that gives the map of an epoch in two pages, the first of which ends within a run.
class PagingMaster final : public testing::FakeMaster::Client {
 public:
  PagingMaster() : Client(nullptr) {}
  absl::StatusOr<ShardMap> GetShardMap(const v1::GetShardMapRequest& request) override {
    ShardMap page{.dataset = request.dataset(), .epoch = request.epoch(), .shards = 10};
    if (request.begin() == 0) {
      page.runs = {{0, 3, "committed"}, {3, 5, "leased"}};
    } else if (request.begin() == 5) {
      page.runs = {{5, 6, "leased"}, {6, 10, "todo"}};
    }
    return page;
  }
};

TEST_F(LiveJobApiTest, PagesOfAMapJoin) {
  PagingMaster master;
  LiveJobApi api({.host = &host_, .order_deadline = kPatience}, &board_, log_.get(), &master,
                 &calls_, &*taker_);
  MUSTER_ASSERT_OK_AND_ASSIGN(const ShardMap map, api.MapOfShards(1, 2));
  EXPECT_EQ(map.dataset, 1u);
  EXPECT_EQ(map.epoch, 2u);
  EXPECT_EQ(map.shards, 10u);
  std::vector<std::string> runs;
  for (const ShardRun& run : map.runs) {
    runs.push_back(run.state + std::to_string(run.begin) + "-" + std::to_string(run.end));
  }
  EXPECT_THAT(runs, ElementsAre("committed0-3", "leased3-6", "todo6-10"));
}

TEST_F(LiveJobApiTest, AMasterThatIsAwayIsNotAsked) {
  Picture picture = *board_.Look();
  picture.job.master_reachable = false;
  board_.Hang(std::move(picture));
  EXPECT_THAT(api_->Shards({}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("does not answer")));
  EXPECT_THAT(api_->Look(), IsOk());
}

TEST_F(LiveJobApiTest, TheTextsOfGrpcAreNotShown) {
  class FailingMaster final : public testing::FakeMaster::Client {
   public:
    FailingMaster() : Client(nullptr) {}
    absl::StatusOr<ShardPage> ListShards(const v1::ListShardsRequest&) override { return answer; }
    absl::Status answer;
  };
  FailingMaster master;
  LiveJobApi api({.host = &host_, .order_deadline = kPatience}, &board_, log_.get(), &master,
                 &calls_, &*taker_);
  master.answer = absl::DeadlineExceededError("the master at 127.0.0.1:7: Deadline Exceeded");
  EXPECT_THAT(api.Shards({}).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, Not(HasSubstr("Exceeded"))));
  master.answer = absl::UnavailableError(
      "the master at 127.0.0.1:7: failed to connect to all addresses; last error: UNKNOWN");
  EXPECT_THAT(api.Shards({}).status(),
              StatusIs(absl::StatusCode::kUnavailable, Not(HasSubstr("UNKNOWN"))));
  master.answer = absl::UnavailableError("the journal's disk is full");
  EXPECT_THAT(api.Shards({}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("disk is full")))
      << "the master's own words";
}

TEST_F(LiveJobApiTest, PartitionsHaveTheirLoad) {
  Picture picture = *board_.Look();
  picture.partition_rates[1] = {.partition = 1,
                                .pulls = 5,
                                .pushes = std::numeric_limits<double>::quiet_NaN(),
                                .bytes = 7,
                                .service_us = 250'000};
  board_.Hang(std::move(picture));
  const rest::PartitionPage page = api_->Partitions(0, 10).value();
  EXPECT_EQ(page.partitions[1].pulls_per_second, 5);
  EXPECT_EQ(page.partitions[1].service_ratio, 0.25);
  EXPECT_FALSE(page.partitions[1].pushes_per_second.has_value());
  EXPECT_FALSE(page.partitions[0].pulls_per_second.has_value());
}

/// A host whose logs do not come before it is opened.
class SlowLogs final : public testing::FakeHost {
 public:
  absl::StatusOr<LogPiece> ReadLog(const std::string&, const LogQuestion&) const override {
    const MutexLock lock(&mutex_);
    ++inside_;
    changed_.SignalAll();
    while (!open_) changed_.Wait(&mutex_);
    return LogPiece{};
  }
  void AwaitReaders(int count) {
    const MutexLock lock(&mutex_);
    while (inside_ < count) changed_.Wait(&mutex_);
  }
  void Open() {
    const MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable int inside_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool open_ MUSTER_GUARDED_BY(mutex_) = false;
};

TEST_F(LiveJobApiTest, LogsThatTakeLongLeaveThreadsForTheRest) {
  SlowLogs host;
  LiveJobApi api({.host = &host, .order_deadline = kPatience}, &board_, log_.get(), master_.get(),
                 &calls_, &*taker_);
  std::vector<std::jthread> readers(2);
  for (std::jthread& reader : readers) {
    reader = std::jthread([&api] { EXPECT_THAT(api.Logs("ps-0", {}).status(), IsOk()); });
  }
  host.AwaitReaders(2);
  EXPECT_THAT(api.Logs("worker-0", {}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("too many")));
  EXPECT_EQ(api.Shards({})->total, 0u);
  host.Open();
  readers.clear();
  EXPECT_THAT(api.Logs("worker-0", {}).status(), IsOk());
}

TEST_F(LiveJobApiTest, LogsAreOfNodesThatThereAre) {
  EXPECT_THAT(api_->Logs("../secret", {}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no node")));
  EXPECT_TRUE(api_->Logs("ps-0", {})->lines.empty()) << "not started yet";
  host_.logs["ps-0"] = {"one", "\xff two"};
  const rest::LogChunk chunk = api_->Logs("ps-0", {.offset = std::nullopt, .lines = 9}).value();
  EXPECT_THAT(chunk.lines, ElementsAre("one", "? two"));
  EXPECT_EQ(chunk.next_offset, 10u);
}

TEST_F(LiveJobApiTest, OrdersAreTakenByTheDecidingThread) {
  EXPECT_THAT(api_->Give({RestartNode{.node = "ps-0"}, ""}).status(), IsOk());
  EXPECT_THAT(api_->Give({ResizeNode{.node = "ps-0"}, ""}).status(), IsOk());
  EXPECT_THAT(api_->Give({EndNode{"ps-0"}, ""}).status(), IsOk());
  EXPECT_THAT(api_->Give({ScaleWorkers{4}, ""}).status(), IsOk());
  EXPECT_THAT(api_->Give({SetPaused{"hang", true}, ""}).status(), IsOk());
  EXPECT_THAT(api_->Give({SetPaused{"hang", false}, ""}).status(), IsOk());
  EXPECT_EQ(api_->GetSamples({})->times_us.size(), 1u);
  EXPECT_THAT(api_->GetSamples({.node = "ps-7"}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-7")));
  EXPECT_THAT(taker_->taken,
              ElementsAre("restart ps-0", "resize ps-0", "drain ps-0", "scale workers",
                          "pause-policy hang", "resume-policy hang"));
}

TEST_F(LiveJobApiTest, WhatIsTheMastersIsToldThenAskedFor) {
  EXPECT_EQ(api_->Give({CancelJob{}, "enough"})->id, 1u);
  EXPECT_EQ(master_->GetStatus()->state, JobState::kCancelled);
  EXPECT_EQ(master_->GetStatus()->reason, "enough");
  server_.Stop();
  EXPECT_THAT(api_->Give({DrainJob{}, ""}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  EXPECT_THAT(taker_->taken.back(), HasSubstr("failed 2: "));
}

TEST_F(LiveJobApiTest, ADrainOfTheJobIsTheMasters) {
  EXPECT_EQ(api_->Give({DrainJob{}, "lunch"})->id, 1u);
  EXPECT_NE(master_->GetStatus()->state, JobState::kRunning);
}

TEST_F(LiveJobApiTest, OnlyTheMasterDrainsANodeOfAnotherMachine) {
  Picture picture = *board_.Look();
  picture.nodes.nodes.resize(3);
  picture.nodes.nodes[2].name = "far";
  picture.nodes.nodes[2].host = "gpu-2";
  board_.Hang(picture);
  // It is told first; this master knows no such node.
  EXPECT_THAT(api_->Give({EndNode{"far"}, ""}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("far")));
  EXPECT_THAT(taker_->taken, ElementsAre("drain far", HasSubstr("failed 1: ")));
  // In a cluster, the job's own processes name their machine, too.
  picture.nodes.nodes[2].role = "scaler";
  board_.Hang(picture);
  EXPECT_THAT(api_->Give({EndNode{"far"}, ""}), IsOk());
}

TEST_F(LiveJobApiTest, ARetryIsToldBeforeTheMasterPutsShardsBack) {
  EXPECT_THAT(api_->Give({RetryShards{}, ""}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no shard is FAILED")));
  EXPECT_THAT(api_->Give({RetryShards{{"one"}}, ""}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one")));
  EXPECT_THAT(taker_->taken, ElementsAre());
  EXPECT_THAT(api_->Give({RetryShards{{"0/0/1"}}, ""}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0/0/1")));
  EXPECT_THAT(taker_->taken, ElementsAre("retry-shards job 1",
                                         AllOf(HasSubstr("failed 1: the master"),
                                               HasSubstr("shard 0/0/1 is todo, not FAILED"))));
}

}  // namespace
}  // namespace muster::scaler
