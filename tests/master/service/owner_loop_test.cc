#include "master/service/owner_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/master/service/counting_journal.h"
#include "tests/support/fake_clock.h"
#include "tests/support/gate.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::Gate;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

class OwnerLoopTest : public ::testing::Test {
 protected:
  OwnerLoopTest() { SetUpLoop(); }
  void SetUpLoop(size_t batch_max = 4'096) {
    CoreOptions options;
    DatasetPlan plan{"train", DatasetMode::kTrain, 1, 4, 40, 5, nullptr};
    plan.size_of = [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; };
    options.datasets = {plan};
    loop_ = std::make_unique<OwnerLoop>(
        std::make_unique<MasterCore>(options, DurableState{}, StepTime{clock_.Now()}), &journal_,
        &clock_, OwnerLoop::Options{.queue_max = 3, .batch_max = batch_max},
        [](const std::vector<std::string>&) {});
  }
  /// From now on, the next sync waits until `gate_` opens.
  void HoldSync() {
    journal_.entered = &entered_;
    journal_.gate = &gate_;
  }
  /// Posts a step that changes the state; its answer counts.
  void PostDrain(std::vector<absl::Status>* answers, Gate* last = nullptr) {
    loop_->Post({[](MasterCore& core, StepTime at) {
                   core.Drain(at);
                   return absl::OkStatus();
                 },
                 [answers, last](const absl::Status& status) {
                   answers->push_back(status);
                   if (last != nullptr) last->Open();
                 }});
  }
  /// Posts a step that changes the state, and waits for its answer.
  absl::Status Drain() {
    return Do([](MasterCore& core, StepTime at) {
      core.Drain(at);
      return absl::OkStatus();
    });
  }

  /// Posts a step that changes nothing.
  absl::Status Ask() {
    return Do([](MasterCore&, StepTime) { return absl::OkStatus(); });
  }
  /// Posts the hello of a worker, which changes the state.
  absl::Status Meet(const std::string& worker) {
    return Do([worker](MasterCore& core, StepTime at) {
      return core.HelloWorker({worker, 1}, StartNumber(0), at);
    });
  }
  absl::Status Do(std::function<absl::Status(MasterCore&, StepTime)> step) {
    Gate answered;
    absl::Status result;
    loop_->Post({std::move(step), [&](const absl::Status& status) {
                   result = status;
                   answered.Open();
                 }});
    answered.Wait();
    return result;
  }

  Gate gate_, entered_;
  testing::FakeClock clock_;
  testing::CountingJournal journal_;
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

TEST_F(OwnerLoopTest, ItLooksNoMoreOftenThanItIsDue) {
  ASSERT_THAT(loop_->Start(), IsOk());
  clock_.Advance(std::chrono::milliseconds(999));
  ASSERT_THAT(Meet("worker-0"), IsOk());
  clock_.Advance(std::chrono::milliseconds(999));
  EXPECT_THAT(Ask(), IsOk());
  EXPECT_EQ(journal_.looks, 0) << "the write was a look, too";
  clock_.Advance(std::chrono::milliseconds(1));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Ask(), IsOk());
  EXPECT_EQ(journal_.looks, 1);
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

TEST_F(OwnerLoopTest, AJournalThatFailsAtTheStartStartsNothing) {
  journal_.memory.FailWith(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(loop_->Start(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  EXPECT_THAT(Drain(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  loop_->Stop();
}

TEST_F(OwnerLoopTest, AStopDuringASyncRefusesWhatComesLater) {
  ASSERT_THAT(loop_->Start(), IsOk());
  HoldSync();
  std::vector<absl::Status> synced, waiting;
  PostDrain(&synced);
  entered_.Wait();
  PostDrain(&waiting);
  std::thread stopping([&] { loop_->Stop(); });
  // Once it has begun to stop, it refuses at once. Before, what is posted waits.
  absl::Status refused;
  while (refused.ok()) {
    loop_->Post({[](MasterCore&, StepTime) { return absl::OkStatus(); },
                 [&](const absl::Status& status) { refused = status; }});
    if (!absl::IsUnavailable(refused)) refused = absl::OkStatus();
  }
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  EXPECT_THAT(waiting, IsEmpty());
  gate_.Open();
  stopping.join();
  EXPECT_THAT(synced, ElementsAre(IsOk())) << "its step is in the journal";
  EXPECT_THAT(waiting, ElementsAre(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stop"))));
  EXPECT_EQ(loop_->failure(), std::nullopt);
}

TEST_F(OwnerLoopTest, AJournalThatFailsInTheMiddleRefusesAllThatWait) {
  ASSERT_THAT(loop_->Start(), IsOk());
  HoldSync();
  std::vector<absl::Status> answers;
  Gate last;
  PostDrain(&answers);
  entered_.Wait();
  PostDrain(&answers);
  PostDrain(&answers);
  PostDrain(&answers, &last);
  journal_.memory.FailWith(absl::ResourceExhaustedError("the disk is full"));
  gate_.Open();
  last.Wait();
  EXPECT_THAT(Drain(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stopping")));
  loop_->Stop();
  EXPECT_THAT(answers, ::testing::SizeIs(4)) << "each once";
  EXPECT_THAT(answers, Each(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another master"))));
}

TEST_F(OwnerLoopTest, ABatchIsBoundedAndNothingIsLost) {
  SetUpLoop(/*batch_max=*/2);
  ASSERT_THAT(loop_->Start(), IsOk());
  HoldSync();
  std::vector<absl::Status> answers;
  PostDrain(&answers);
  entered_.Wait();
  std::vector<int> steps;
  Gate last;
  int batch_of_third = 0;
  for (int i = 0; i < 3; ++i) {
    loop_->Post({[&, i](MasterCore& core, StepTime at) {
                   steps.push_back(i);
                   if (i == 2) batch_of_third = static_cast<int>(answers.size());
                   core.Drain(at);
                   return absl::OkStatus();
                 },
                 [&, i](const absl::Status& status) {
                   answers.push_back(status);
                   if (i == 2) last.Open();
                 }});
  }
  gate_.Open();
  last.Wait();
  EXPECT_THAT(steps, ElementsAre(0, 1, 2));
  EXPECT_EQ(batch_of_third, 3) << "the two before it had been answered";
  EXPECT_THAT(answers, Each(IsOk()));
}

/// A request that is kept until `ready` is true.
OwnerLoop::Item Kept(const std::atomic<bool>* ready, std::vector<absl::Status>* answers,
                     Gate* answered) {
  return {[](MasterCore&, StepTime) { return absl::OkStatus(); },
          [answers, answered](const absl::Status& status) {
            answers->push_back(status);
            answered->Open();
          },
          [ready](MasterCore&, StepTime) { return ready->load(); }};
}

TEST_F(OwnerLoopTest, AKeptRequestIsAnsweredOnceItIsReady) {
  ASSERT_THAT(loop_->Start(), IsOk());
  std::atomic<bool> ready = false;
  std::vector<absl::Status> answers;
  Gate answered;
  loop_->Post(Kept(&ready, &answers, &answered));
  ASSERT_THAT(Drain(), IsOk());
  EXPECT_THAT(answers, IsEmpty());
  ready = true;
  ASSERT_THAT(Drain(), IsOk());
  answered.Wait();
  loop_->Stop();
  EXPECT_THAT(answers, ElementsAre(IsOk()));
}

TEST_F(OwnerLoopTest, AKeptRequestIsRefusedAtTheEnd) {
  for (const bool failure : {false, true}) {
    SetUpLoop();
    ASSERT_THAT(loop_->Start(), IsOk());
    std::atomic<bool> ready = false;
    std::vector<absl::Status> answers;
    Gate answered;
    loop_->Post(Kept(&ready, &answers, &answered));
    ASSERT_THAT(Drain(), IsOk());
    if (failure) {
      journal_.memory.FailWith(absl::ResourceExhaustedError("the disk is full"));
      EXPECT_THAT(Meet("worker-0"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stop")));
    }
    loop_->Stop();
    EXPECT_THAT(answers, ElementsAre(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stop"))));
  }
}

}  // namespace
}  // namespace muster
