#include "master/service/owner_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/fake_clock.h"
#include "tests/support/gate.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using testing::Gate;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

/// Counts syncs, and can be told to wait in the next one.
class CountingJournal final : public Journal {
 public:
  const std::string& job_id() const override { return memory.job_id(); }
  DurableState TakeState() override { return {}; }
  absl::Status Write(std::span<const Mutation> mutations) override {
    ++writes;
    if (gate != nullptr) {
      entered->Open();
      std::exchange(gate, nullptr)->Wait();
    }
    return memory.Write(mutations);
  }
  absl::Status Look() override {
    ++looks;
    return owned ? absl::OkStatus() : absl::CancelledError("taken over");
  }
  std::atomic<int> looks = 0;
  std::atomic<bool> owned = true;
  std::atomic<int> writes = 0;
  testing::MemoryJournal memory;
  Gate* gate = nullptr;
  Gate* entered = nullptr;
};

class OwnerLoopTest : public ::testing::Test {
 protected:
  OwnerLoopTest() {
    CoreOptions options;
    DatasetPlan plan{"train", DatasetMode::kTrain, 1, 4, 40, 5, nullptr};
    plan.records_of = [](EpochIndex, ShardIndex) { return 10u; };
    options.datasets = {plan};
    loop_ = std::make_unique<OwnerLoop>(
        std::make_unique<MasterCore>(options, DurableState{}, StepTime{clock_.Now()}), &journal_,
        &clock_, OwnerLoop::Options{.queue_max = 3}, [](const std::vector<std::string>&) {});
  }
  /// Posts a step that changes the state, and waits for its answer.
  absl::Status Drain() {
    Gate answered;
    absl::Status result;
    loop_->Post({[](MasterCore& core, StepTime at) {
                   core.Drain(at);
                   return absl::OkStatus();
                 },
                 [&](const absl::Status& status) {
                   result = status;
                   answered.Open();
                 }});
    answered.Wait();
    return result;
  }

  /// Posts a step that changes nothing.
  absl::Status Ask() {
    Gate answered;
    absl::Status result;
    loop_->Post({[](MasterCore&, StepTime) { return absl::OkStatus(); },
                 [&](const absl::Status& status) {
                   result = status;
                   answered.Open();
                 }});
    answered.Wait();
    return result;
  }

  testing::FakeClock clock_;
  CountingJournal journal_;
  std::unique_ptr<OwnerLoop> loop_;
};

TEST_F(OwnerLoopTest, TheStartIsJournaledBeforeAnythingIsServed) {
  EXPECT_THAT(Drain(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  ASSERT_THAT(loop_->Start(), IsOk());
  EXPECT_EQ(journal_.memory.state().meta->incarnation, MasterIncarnation(1));
  EXPECT_THAT(Drain(), IsOk());
  EXPECT_EQ(journal_.memory.state().meta->state, JobState::kDrained);
}

TEST_F(OwnerLoopTest, AMasterWithNothingToWriteStillLooks) {
  ASSERT_THAT(loop_->Start(), IsOk());
  ASSERT_THAT(Drain(), IsOk());
  journal_.owned = false;
  clock_.Advance(std::chrono::milliseconds(999));
  EXPECT_THAT(Ask(), IsOk()) << "what it says was acknowledged before";
  EXPECT_EQ(journal_.looks, 0);
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_THAT(Ask(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  EXPECT_THAT(*loop_->failure(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("taken over")));
}

TEST_F(OwnerLoopTest, RequestsThatComeDuringASyncShareTheNext) {
  ASSERT_THAT(loop_->Start(), IsOk());
  Gate gate, entered;
  journal_.entered = &entered;
  journal_.gate = &gate;
  std::atomic<int> answers = 0;
  Gate all;
  const auto post = [&] {
    loop_->Post({[](MasterCore& core, StepTime at) {
                   return core.HelloWorker({"worker-" + std::to_string(at.wall.count()), 1},
                                           StartNumber(0), at);
                 },
                 [&](const absl::Status&) {
                   if (++answers == 4) all.Open();
                 }});
  };
  post();
  entered.Wait();
  const int before = journal_.writes;
  EXPECT_EQ(answers, 0) << "nothing is answered before the sync";
  for (int i = 0; i < 3; ++i) post();
  absl::Status refused;
  loop_->Post({nullptr, [&](const absl::Status& status) { refused = status; }});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("3 requests")));
  gate.Open();
  all.Wait();
  EXPECT_LE(journal_.writes, before + 1);
}

TEST_F(OwnerLoopTest, AFailedSyncAnswersNobodyAndIsFatal) {
  ASSERT_THAT(loop_->Start(), IsOk());
  journal_.memory.FailWith(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(Drain(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  loop_->Stop();
  ASSERT_TRUE(loop_->failure().has_value());
  EXPECT_THAT(*loop_->failure(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the disk is full")));
  EXPECT_EQ(journal_.memory.state().meta->state, JobState::kRunning);
}

TEST_F(OwnerLoopTest, StopIsIdempotentAndRefusesAfterwards) {
  ASSERT_THAT(loop_->Start(), IsOk());
  loop_->Stop();
  loop_->Stop();
  EXPECT_THAT(Drain(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  EXPECT_EQ(loop_->failure(), std::nullopt);
}

}  // namespace
}  // namespace muster
