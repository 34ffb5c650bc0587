#include "admin/master_link.h"

#include <gmock/gmock.h>
#include <poll.h>

#include "base/mutex.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::SizeIs;

/// A master in memory that can be away.
class FakeAdminClient final : public AdminClient {
 public:
  struct State {
    Mutex mutex;
    CondVar changed;
    bool away MUSTER_GUARDED_BY(mutex) = false;
    bool wants_token MUSTER_GUARDED_BY(mutex) = false;
    bool silent MUSTER_GUARDED_BY(mutex) = false;  // calls wait for End
    bool ended MUSTER_GUARDED_BY(mutex) = false;
    bool gone MUSTER_GUARDED_BY(mutex) = false;  // the client, and so its connection
    uint64_t refused MUSTER_GUARDED_BY(mutex) = 0;
    std::vector<std::string> heard MUSTER_GUARDED_BY(mutex);
    v1::ReportNodeRequest last_report MUSTER_GUARDED_BY(mutex);
    /// So many events come between each status and the next call.
    uint64_t events_between MUSTER_GUARDED_BY(mutex) = 0;
    uint64_t events_newest MUSTER_GUARDED_BY(mutex) = 2;
  };
  explicit FakeAdminClient(State* state) : state_(state) {}
  FakeAdminClient(const FakeAdminClient&) = delete;
  FakeAdminClient& operator=(const FakeAdminClient&) = delete;
  ~FakeAdminClient() override {
    MutexLock lock(&state_->mutex);
    state_->gone = true;
  }

  void End() override {
    MutexLock lock(&state_->mutex);
    state_->ended = true;
    state_->changed.SignalAll();
  }
  absl::StatusOr<JobStatus> GetStatus() override {
    const absl::Status status = Enter("");
    if (!status.ok()) return status;
    JobStatus answer;
    answer.done_seq = 7;
    answer.state = JobState::kRunning;
    MutexLock lock(&state_->mutex);
    answer.events_newest = state_->events_newest;
    state_->events_newest += std::exchange(state_->events_between, 0);
    return answer;
  }
  absl::StatusOr<MasterEvents> ListEvents(const v1::ListEventsRequest& request) override {
    MasterEvents response;
    MutexLock lock(&state_->mutex);
    for (uint64_t i = request.after() + 1; i <= state_->events_newest; ++i) {
      response.events.push_back({.sequence = i});
    }
    return response;
  }
  absl::Status ReportNode(const v1::ReportNodeRequest& request) override {
    const absl::Status status = Enter(request.node() + " " + request.what());
    MutexLock lock(&state_->mutex);
    if (status.ok()) state_->last_report = request;
    return request.node() == "bad" ? absl::InvalidArgumentError("has no node") : status;
  }
  absl::StatusOr<v1::JoinNodeResponse> JoinNode(const v1::JoinNodeRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::Status Drain() override { return Enter("drain"); }
  absl::Status Cancel(const v1::CancelRequest& request) override {
    return Enter((request.failed() ? "fail " : "cancel ") + request.reason());
  }
  absl::StatusOr<ShardPage> ListShards(const v1::ListShardsRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<ShardMap> GetShardMap(const v1::GetShardMapRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::RetryShardsResponse> RetryShards(const v1::RetryShardsRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::DrainNodeResponse> DrainNode(const v1::DrainNodeRequest& request) override {
    const absl::Status status =
        Enter("drain " + request.node() + " " + std::to_string(request.timeout_ms()));
    if (!status.ok()) return status;
    return v1::DrainNodeResponse();
  }
  absl::Status ResumeNode(const v1::ResumeNodeRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<PartitionList> ListPartitions(const v1::ListPartitionsRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::GetManifestResponse> GetManifest(const v1::GetManifestRequest&) override {
    return absl::UnimplementedError("");
  }

 private:
  absl::Status Enter(const std::string& what) {
    MutexLock lock(&state_->mutex);
    state_->changed.SignalAll();
    if (state_->silent) {
      ++state_->refused;
      while (!state_->ended) state_->changed.Wait(&state_->mutex);
      return absl::CancelledError("");
    }
    if (state_->away) {
      ++state_->refused;
      return absl::UnavailableError("away");
    }
    if (state_->wants_token) return absl::UnauthenticatedError("this call has a wrong token");
    if (!what.empty()) state_->heard.push_back(what);
    return absl::OkStatus();
  }
  State* const state_;
};

class MasterLinkTest : public ::testing::Test {
 protected:
  void Connect(milliseconds interval = milliseconds(5)) {
    link_ = std::make_unique<MasterLink>(std::make_unique<FakeAdminClient>(&state_), "run-1",
                                         interval, &clock_);
  }
  std::vector<std::string> Heard(size_t count) {
    MutexLock lock(&state_.mutex);
    for (int i = 0; i < 2'000 && state_.heard.size() < count; ++i) {
      state_.changed.WaitFor(&state_.mutex, milliseconds(10));
    }
    return state_.heard;
  }
  static TellMaster Report(const std::string& node, bool exited) {
    TellMaster report;
    report.node = node;
    report.exited = exited;
    report.exit.signal = exited ? 9 : 0;
    report.computing_token = 77;
    report.incarnation = 8;
    report.text = "caf\xc3\xa9";
    return report;
  }

  SystemClock clock_;
  FakeAdminClient::State state_;
  std::unique_ptr<MasterLink> link_;
};

TEST_F(MasterLinkTest, DeliversInOrderAndFillsTheReportIn) {
  Connect();
  link_->Tell(Report("worker-0", false));
  link_->Tell(Report("worker-0", true));
  link_->AskDrain();
  link_->AskFail("crash loop");
  EXPECT_THAT(Heard(4),
              ElementsAre("worker-0 started", "worker-0 exited", "drain", "fail crash loop"));
  MutexLock lock(&state_.mutex);
  EXPECT_EQ(state_.last_report.run_id(), "run-1");
  EXPECT_EQ(state_.last_report.signal(), 9u);
  EXPECT_EQ(state_.last_report.computing_token(), 77u);
  EXPECT_EQ(state_.last_report.incarnation(), 8u);
  EXPECT_EQ(state_.last_report.text(), "caf??");
}

TEST_F(MasterLinkTest, KeepsReportsWhileTheMasterIsAway) {
  {
    MutexLock lock(&state_.mutex);
    state_.away = true;
  }
  Connect();
  link_->Tell(Report("master", true));
  link_->Tell(Report("bad", false));
  link_->Tell(Report("master", false));
  link_->AskDrain();
  link_->AskDrain();  // one is enough
  for (const char* node : {"worker-0", "worker-1", "worker-0"}) {
    link_->AskDrainNode(node, seconds(30));  // one of each node
  }
  {
    MutexLock lock(&state_.mutex);
    for (int i = 0; i < 2'000 && state_.refused < 3; ++i) {
      state_.changed.WaitFor(&state_.mutex, milliseconds(10));
    }
    EXPECT_TRUE(state_.heard.empty());
    state_.away = false;
  }
  EXPECT_THAT(Heard(6), ElementsAre("master exited", "bad started", "master started", "drain",
                                    "drain worker-0 30000", "drain worker-1 30000"))
      << "a report that is refused must not stop those behind it";
}

TEST_F(MasterLinkTest, AnswersWakeTheOwnerAndCarryNewEventsOnce) {
  Connect();
  pollfd ready = {link_->wake_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
  std::vector<MasterLink::Answer> answers = link_->TakeAnswers();
  ASSERT_FALSE(answers.empty());
  EXPECT_THAT(answers[0].events, SizeIs(2));
  EXPECT_EQ(ToView(answers[0].status).done_seq, 7u);
  EXPECT_EQ(ToView(answers[0].status).state, JobState::kRunning);
  ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
  answers = link_->TakeAnswers();
  ASSERT_FALSE(answers.empty());
  EXPECT_THAT(answers.back().events, SizeIs(0));
}

TEST_F(MasterLinkTest, AnEventThatIsNewerThanTheStatusComesOnce) {
  {
    MutexLock lock(&state_.mutex);
    state_.events_between = 1;
  }
  Connect();
  std::vector<uint64_t> events;
  // Two answers after the one in whose middle it came.
  for (int answers = 0; answers < 3;) {
    pollfd ready = {link_->wake_fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
    for (const MasterLink::Answer& answer : link_->TakeAnswers()) {
      ++answers;
      for (const MasterEvent& event : answer.events) events.push_back(event.sequence);
    }
  }
  EXPECT_THAT(events, ElementsAre(1, 2, 3));
}

TEST_F(MasterLinkTest, ARefusalIsASignOfLifeAndSilenceIsNone) {
  {
    MutexLock lock(&state_.mutex);
    state_.away = true;
  }
  Connect();
  {
    MutexLock lock(&state_.mutex);
    for (int i = 0; i < 2'000 && state_.refused < 2; ++i) {
      state_.changed.WaitFor(&state_.mutex, milliseconds(10));
    }
  }
  EXPECT_FALSE(link_->TakeRefusal().has_value());
  {
    MutexLock lock(&state_.mutex);
    state_.away = false;
    state_.wants_token = true;
  }
  pollfd ready = {link_->wake_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
  EXPECT_TRUE(link_->TakeRefusal().has_value());
  EXPECT_THAT(link_->TakeAnswers(), SizeIs(0));
}

TEST_F(MasterLinkTest, TheEndWaitsForNoAnswer) {
  {
    MutexLock lock(&state_.mutex);
    state_.silent = true;
  }
  Connect();
  {
    MutexLock lock(&state_.mutex);
    while (state_.refused == 0) state_.changed.Wait(&state_.mutex);
  }
  link_ = nullptr;
  MutexLock lock(&state_.mutex);
  EXPECT_TRUE(state_.ended);
}

TEST_F(MasterLinkTest, AReportIsFollowedByAQuestion) {
  Connect(std::chrono::hours(1));
  pollfd ready = {link_->wake_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 20'000), 1);
  ASSERT_THAT(link_->TakeAnswers(), SizeIs(1));
  const uint64_t number = link_->Tell(Report("scaler", true));
  std::vector<MasterLink::Answer> answers;
  while (answers.empty() && ::poll(&ready, 1, 20'000) == 1) answers = link_->TakeAnswers();
  EXPECT_THAT(answers, SizeIs(1));
  EXPECT_EQ(link_->reports_over(), number);
}

TEST_F(MasterLinkTest, NothingIsOpenAfterItHasHungUp) {
  Connect();
  link_->HangUp();
  {
    MutexLock lock(&state_.mutex);
    EXPECT_TRUE(state_.gone);
  }
  link_->Tell(Report("master", true));
  link_->HangUp();
}

TEST(ToViewTest, WhatIsDecidedByIsTaken) {
  JobStatus status;
  status.state = JobState::kDraining;
  status.datasets.resize(2);
  for (DatasetStatus& dataset : status.datasets) {
    dataset.epochs = {{.records_done = 4, .shards = {.failed = 1}}};
  }
  status.datasets[0].omitted_records_done = 2;
  status.nodes = {{.name = "ps-0", .drain = DrainState::kDraining},
                  {.name = "worker-0", .start = 3, .worker = WorkerStatus{}}};
  status.nodes[1].worker->times.minibatches_finished = 5;
  status.end_unheard_by = {"far"};
  const MasterView view = ToView(status);
  EXPECT_EQ(view.state, JobState::kDraining);
  EXPECT_EQ(view.end_unheard_by, std::vector<std::string>({"far"}));
  EXPECT_EQ(view.records_done, 10u);
  EXPECT_EQ(view.failed_shards, 2u);
  EXPECT_EQ(view.nodes.at(0).drain, DrainState::kDraining);
  EXPECT_EQ(view.nodes.at(1).start, StartNumber(3));
  EXPECT_EQ(view.nodes.at(1).minibatches, 5u);
}

}  // namespace
}  // namespace muster
