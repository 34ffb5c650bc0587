#include "worker_sdk/member/attempt_sums.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"
#include "worker_sdk/member/member_desk.h"

namespace muster::internal {
namespace {

using muster::testing::IsOk;
using ::testing::ElementsAre;

constexpr uint32_t kElements = 4;

std::unique_ptr<collectives::Listener> Listen(const std::string& worker, uint64_t incarnation) {
  return *collectives::Listener::Start(
      {.job_id = "job", .worker = worker, .incarnation = incarnation});
}

/// The member "a", whose loop runs when the test says so, and "b", of which there is a Reducer.
class AttemptSumsTest : public ::testing::Test {
 protected:
  AttemptSumsTest() {
    const std::vector<GroupTensor> tensors{{"sum", GroupDtype::kFloat32, kElements, true, 0}};
    gradients_ = desk_.Look([&](DeskContents& desk) {
      desk.core.emplace(sdk::MemberCore::Options{.worker = "a", .incarnation = 1});
      return &desk.gradients.emplace(*sdk::OwnGradients::Create(tensors));
    });
    desk_.Open({.post = [] {}, .on_run = [](sdk::StepRunNumber) {}});
    sums_ = std::make_unique<AttemptSums>(AttemptSums::Options{.desk = &desk_,
                                                               .listener = a_.get(),
                                                               .device_buckets = {nullptr},
                                                               .gradients = gradients_});
  }
  ~AttemptSumsTest() override { sums_.reset(); }

  /// The master has begun an attempt, and "a" has these minibatches of step 1.
  void BeginAttempt(uint64_t attempt, uint32_t minibatches) {
    GroupExchangeReply reply;
    reply.master_incarnation = MasterIncarnation(1);
    reply.news = attempt;
    reply.standing = GroupStanding::kMember;
    reply.lineage = LineageNumber(1);
    reply.initial_is_base = true;
    reply.attempt = AttemptNumber(attempt);
    reply.members = {{"a", 1, a_->addresses()}, {"b", 2, b_->addresses()}};
    reply.work = StepWork{.step = StepNumber(1)};
    if (minibatches > 0) reply.work->share.spans = {{MinibatchIndex(0), minibatches}};
    desk_.Tell([&](DeskContents& desk) { desk.core->OnReply(reply); });
    other_ = nullptr;
    other_ = collectives::Reducer::Start({.lineage = LineageNumber(1),
                                          .attempt = AttemptNumber(attempt),
                                          .rank = 1,
                                          .members = reply.members,
                                          .listener = b_.get()},
                                         [](const SuspectedMember&) {});
  }
  /// What the trainer's thread gets to compute.
  sdk::StepRunNumber BeginRun() {
    return desk_.Tell([](DeskContents& desk) {
      const sdk::TrainerTask task = desk.core->NextTask();
      EXPECT_EQ(task.kind, sdk::TrainerTask::Kind::kCompute);
      desk.gradients->Begin(task.run);
      return task.run;
    });
  }
  void Compute(sdk::StepRunNumber run, uint32_t minibatch, float value) {
    ASSERT_TRUE(desk_.StartMinibatch(run, MinibatchIndex(minibatch)));
    desk_.Tell([&](DeskContents& desk) {
      const std::vector<float> gradient(kElements, value);
      EXPECT_THAT(desk.gradients->Add(run, MinibatchIndex(minibatch), 0, gradient), IsOk());
      desk.Filled(0);
      desk.gradients->End(run, MinibatchIndex(minibatch));
      desk.core->OnMinibatch(run, MinibatchIndex(minibatch), std::chrono::microseconds(1));
    });
  }
  /// The loop carries out what the desk has for it.
  void RunLoop() {
    a_->RunAndWait([this] { sums_->CarryOut(desk_.TakeOrders()); });
  }
  /// "b" gives a bucket of zeros.
  void GiveOther() {
    zeros_ = std::vector<float>(kElements);
    total_ = std::vector<float>(kElements);
    other_->Sum(StepNumber(1), 0, GroupDtype::kFloat32, std::as_bytes(std::span(zeros_)),
                std::as_writable_bytes(std::span(total_)), [](const absl::Status&, uint32_t) {});
  }
  void RunLoopUntil(const std::function<bool(DeskContents&)>& holds) {
    while (!desk_.Look([&](DeskContents& desk) { return holds(desk); })) RunLoop();
  }
  uint32_t reads() {
    return desk_.Look([](DeskContents& desk) { return desk.reads; });
  }
  /// In attempt 1, "a" has one minibatch and has given its bucket, and "b" has not. Returns the
  /// run.
  sdk::StepRunNumber GiveInAttemptOne() {
    BeginAttempt(1, 1);
    const sdk::StepRunNumber run = BeginRun();
    Compute(run, 0, 1);
    RunLoop();
    EXPECT_EQ(reads(), 1u);
    return run;
  }
  /// "b" gives its bucket, and each element of the sum becomes `value`.
  void ExpectTotal(float value) {
    GiveOther();
    RunLoopUntil([](DeskContents& desk) { return desk.sums != nullptr; });
    desk_.Look([value](DeskContents& desk) {
      EXPECT_THAT(desk.sums->floats(0), ElementsAre(value, value, value, value));
    });
  }

  std::unique_ptr<collectives::Listener> a_ = Listen("a", 1), b_ = Listen("b", 2);
  MemberDesk desk_{[](const absl::Status&) {}};
  sdk::OwnGradients* gradients_ = nullptr;
  std::unique_ptr<AttemptSums> sums_;
  std::vector<float> zeros_, total_;
  std::unique_ptr<collectives::Reducer> other_;
};

TEST_F(AttemptSumsTest, ABucketIsAddedAsSoonAsItHasTheShare) {
  BeginAttempt(1, 2);
  const sdk::StepRunNumber run = BeginRun();
  Compute(run, 0, 1);
  RunLoop();
  EXPECT_EQ(reads(), 0u);
  Compute(run, 1, 2);
  RunLoop();
  EXPECT_EQ(reads(), 1u);
  ExpectTotal(3);
  EXPECT_EQ(reads(), 0u);
}

TEST_F(AttemptSumsTest, AMemberWithoutMinibatchesAddsZeros) {
  BeginAttempt(1, 0);
  RunLoop();
  ExpectTotal(0);
}

/// What the minibatch adds would change the gradients of the other attempt while they are sent.
TEST_F(AttemptSumsTest, AMinibatchWaitsForTheSumsThatReadItsBucket) {
  const sdk::StepRunNumber run = GiveInAttemptOne();
  // "b" has not given its bucket. In the new attempt, "a" has one minibatch more.
  BeginAttempt(2, 2);
  ASSERT_EQ(BeginRun(), run);
  EXPECT_FALSE(desk_.StartMinibatch(run, MinibatchIndex(1), desk_.Now()));
  RunLoopUntil([](DeskContents& desk) { return desk.reads == 0; });
  Compute(run, 1, 2);
  RunLoop();
  ExpectTotal(3);
}

TEST_F(AttemptSumsTest, ARunWaitsForTheSumsOfTheOneBefore) {
  const sdk::StepRunNumber run = GiveInAttemptOne();
  desk_.Tell([&](DeskContents& desk) { desk.core->OnTrainerFailed(run, "it fails", false); });
  BeginAttempt(2, 1);
  const sdk::StepRunNumber next =
      desk_.Tell([](DeskContents& desk) { return desk.core->NextTask().run; });
  ASSERT_NE(next, run);
  EXPECT_FALSE(desk_.BeginRun(next, desk_.Now()));
  EXPECT_EQ(gradients_->run(), run);
  RunLoopUntil([](DeskContents& desk) { return desk.reads == 0; });
  EXPECT_TRUE(desk_.BeginRun(next));
  Compute(next, 0, 5);
  RunLoop();
  ExpectTotal(5);
}

TEST_F(AttemptSumsTest, AFailedStepBeginsAgainWhenItsSumsHaveEnded) {
  const sdk::StepRunNumber run = GiveInAttemptOne();
  desk_.Tell([&](DeskContents& desk) { desk.core->OnTrainerFailed(run, "it fails", false); });
  BeginAttempt(2, 0);
  // It has no minibatch any more: its zeros wait until nobody reads the gradients.
  a_->RunAndWait([this] { sums_->CarryOut({.all_blocks = true}); });
  EXPECT_EQ(gradients_->run(), run);
  RunLoopUntil([run](DeskContents& desk) { return desk.gradients->run() != run; });
  ExpectTotal(0);
}

}  // namespace
}  // namespace muster::internal
