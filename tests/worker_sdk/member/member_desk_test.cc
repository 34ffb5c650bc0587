#include "worker_sdk/member/member_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "worker_sdk/member/kept_totals.h"

namespace muster::internal {
namespace {

GroupExchangeReply Work() {
  GroupExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(1);
  reply.news = 1;
  reply.standing = GroupStanding::kMember;
  reply.lineage = LineageNumber(1);
  reply.initial_is_base = true;
  reply.attempt = AttemptNumber(1);
  reply.members = {{"a", 1, {}}};
  reply.work = StepWork{.step = StepNumber(1)};
  reply.work->share.spans = {{MinibatchIndex(0), 1}};
  return reply;
}

class MemberDeskTest : public ::testing::Test {
 protected:
  MemberDeskTest() {
    const std::vector<GroupTensor> tensors{{"sum", GroupDtype::kFloat32, 1, true, 0}};
    desk_.Look([&](DeskContents& desk) {
      desk.core.emplace(sdk::MemberCore::Options{.worker = "a", .incarnation = 1});
      desk.gradients.emplace(*sdk::OwnGradients::Create(tensors));
    });
  }
  void Open() {
    desk_.Open({.post = [this] { ++posted_; },
                .on_run = [this](sdk::StepRunNumber run) { runs_.push_back(run); }});
  }

  std::vector<std::string> failures_;
  std::vector<sdk::StepRunNumber> runs_;
  int posted_ = 0;
  MemberDesk* asking_ = nullptr;
  MemberDesk desk_{
      [this](const absl::Status& failure) { failures_.push_back(std::string(failure.message())); }};
};

TEST_F(MemberDeskTest, TheLoopIsToldOnceUntilItTakesTheOrders) {
  Open();
  EXPECT_EQ(posted_, 1) << "the master knows nothing of this member";
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  EXPECT_EQ(posted_, 1);
  const MemberDesk::Orders orders = desk_.TakeOrders();
  EXPECT_TRUE(orders.effects.call && orders.effects.ring && orders.effects.sums);
  EXPECT_FALSE(orders.over || orders.all_blocks);
  desk_.Tell([](DeskContents& desk) { desk.core->Request(); });
  EXPECT_EQ(posted_, 1) << "there is nothing to do";
  desk_.Tell([](DeskContents& desk) { desk.core->Leave(); });
  EXPECT_EQ(posted_, 2);
}

TEST_F(MemberDeskTest, NothingIsToldBeforeItIsOpenOrAfterItIsClosed) {
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  EXPECT_EQ(posted_, 0);
  Open();
  EXPECT_EQ(posted_, 1);
  desk_.TakeOrders();
  desk_.Close();
  desk_.Tell([](DeskContents& desk) { desk.core->Leave(); });
  EXPECT_EQ(posted_, 1);
}

TEST_F(MemberDeskTest, AFilledBucketIsOneThatHasTheShare) {
  Open();
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  desk_.TakeOrders();
  desk_.Tell([](DeskContents& desk) {
    desk.gradients->Begin(desk.core->run());
    desk.Filled(0);
  });
  EXPECT_TRUE(desk_.TakeOrders().filled.empty());
  desk_.Tell([](DeskContents& desk) {
    desk.gradients->End(desk.core->run(), MinibatchIndex(0));
    desk.Filled(0);
  });
  EXPECT_THAT(desk_.TakeOrders().filled, ::testing::ElementsAre(0));
}

TEST_F(MemberDeskTest, WhatABucketGetsWakesTheLoopWhenItsBlockIsComplete) {
  Open();
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  desk_.TakeOrders();
  desk_.Tell([](DeskContents& desk) { desk.gradients->Begin(desk.core->run()); });
  desk_.TakeOrders();
  const int before = posted_;
  desk_.TellOfBucket([](DeskContents& desk) { desk.Filled(0); });
  EXPECT_EQ(posted_, before) << "it has not got its share";
  const auto end = [](DeskContents& desk) {
    desk.gradients->End(desk.core->run(), MinibatchIndex(0));
    desk.Filled(0);
  };
  desk_.TellOfBucket(end);
  EXPECT_EQ(posted_, before + 1);
  desk_.TellOfBucket(end);
  EXPECT_EQ(posted_, before + 1) << "the loop has not looked yet";
  EXPECT_FALSE(desk_.TakeOrders().filled.empty());
  desk_.TellOfBucket(end);
  EXPECT_EQ(posted_, before + 2);
}

TEST_F(MemberDeskTest, ARunIsToldWhenItBegins) {
  Open();
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  desk_.Tell([](DeskContents& desk) { desk.core->Leave(); });
  EXPECT_THAT(runs_, ::testing::ElementsAre(
                         desk_.Look([](DeskContents& desk) { return desk.core->run(); })));
}

TEST_F(MemberDeskTest, AMinibatchBeginsWhenNoSumReadsGradients) {
  Open();
  desk_.Tell([](DeskContents& desk) {
    desk.core->OnReply(Work());
    desk.reads = 1;
  });
  const sdk::StepRunNumber run = desk_.Look([](DeskContents& desk) { return desk.core->run(); });
  EXPECT_FALSE(desk_.StartMinibatch(run, MinibatchIndex(0), desk_.Now()));
  desk_.Tell([](DeskContents& desk) { desk.reads = 0; });
  EXPECT_TRUE(desk_.StartMinibatch(run, MinibatchIndex(0), desk_.Now()));
}

TEST_F(MemberDeskTest, ARunBeginsWhenNoSumReadsThoseOfTheRunBefore) {
  const auto run = [this] {
    return desk_.Look([](DeskContents& desk) { return desk.gradients->run(); });
  };
  EXPECT_TRUE(desk_.BeginRun(3, desk_.Now()));
  desk_.Tell([](DeskContents& desk) { desk.reads = 1; });
  EXPECT_TRUE(desk_.BeginRun(3, desk_.Now())) << "it is the same run";
  EXPECT_FALSE(desk_.BeginRun(4, desk_.Now()));
  EXPECT_EQ(run(), 3u);
  desk_.Tell([](DeskContents& desk) { desk.reads = 0; });
  EXPECT_TRUE(desk_.BeginRun(4, desk_.Now()));
  EXPECT_EQ(run(), 4u);
}

TEST_F(MemberDeskTest, ZerosAreGivenAtOnceToARunOfWhichThisMemberHasNothing) {
  Open();
  GroupExchangeReply reply = Work();
  reply.work->share.spans.clear();
  desk_.Tell([&](DeskContents& desk) {
    desk.core->OnReply(reply);
    desk.reads = 1;
  });
  desk_.TakeOrders();
  ASSERT_TRUE(desk_.Look([](DeskContents& desk) { return desk.wanted.has_value(); }));
  desk_.Tell([](DeskContents& desk) { desk.Freed(); });
  EXPECT_FALSE(desk_.TakeOrders().all_blocks) << "a sum reads them";
  desk_.Tell([](DeskContents& desk) {
    desk.reads = 0;
    desk.Freed();
  });
  EXPECT_TRUE(desk_.TakeOrders().all_blocks);
  EXPECT_FALSE(desk_.TakeOrders().all_blocks) << "it was told once";
  desk_.Tell([](DeskContents& desk) {
    desk.gradients->Begin(desk.wanted->run);
    desk.Freed();
  });
  EXPECT_FALSE(desk_.TakeOrders().all_blocks) << "they are there";
}

TEST_F(MemberDeskTest, WhoHasComputedMakesTheLoopLookSooner) {
  Open();
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  desk_.TakeOrders();
  desk_.Tell([](DeskContents& desk) { desk.core->Request(); });
  const int before = posted_;
  const TimePoint now = desk_.Now();
  const auto computed = [&](uint32_t calls, TimePoint looks_at) {
    desk_.Tell([&](DeskContents& desk) {
      desk.calls = calls;
      desk.looks_at = looks_at;
      desk.Computed(now);
    });
  };
  computed(0, TimePoint());
  EXPECT_EQ(posted_, before) << "it looks soon enough";
  computed(1, now + std::chrono::hours(1));
  EXPECT_EQ(posted_, before) << "the answer to a call makes it look";
  computed(0, now + std::chrono::hours(1));
  EXPECT_EQ(posted_, before + 1);
}

TEST_F(MemberDeskTest, TheFirstFailureIsToldAndEndsEveryWait) {
  Open();
  desk_.Fail(absl::InternalError("first"));
  desk_.Fail(absl::InternalError("second"));
  EXPECT_THAT(failures_, ::testing::ElementsAre("first"));
  EXPECT_EQ(desk_.Look([](DeskContents& desk) { return desk.failure.message(); }), "first");
  EXPECT_TRUE(desk_.TakeOrders().over);
  EXPECT_FALSE(desk_.Await(MemberDesk::Waits::kTime, [](DeskContents&) { return false; }));
  EXPECT_FALSE(desk_.StartMinibatch(1, MinibatchIndex(0)));
}

TEST_F(MemberDeskTest, AWaitThatIsToldToEndFailsTheGroup) {
  int asked = 0;
  MemberDesk asking(
      [this](const absl::Status& failure) { failures_.push_back(std::string(failure.message())); },
      [&]() -> absl::Status {
        EXPECT_FALSE(asking_->Look([](DeskContents& desk) { return desk.over(); }));
        return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("interrupted");
      });
  asking_ = &asking;
  asking.Tell([](DeskContents& desk) {
    desk.core.emplace(sdk::MemberCore::Options{.worker = "a", .incarnation = 1});
  });
  EXPECT_FALSE(asking.Await(MemberDesk::Waits::kTask, [](DeskContents&) { return false; }));
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(failures_, ::testing::ElementsAre("interrupted"));
}

TEST_F(MemberDeskTest, TheTrainerIsWokenForATask) {
  Open();
  std::thread trainer([this] {
    EXPECT_TRUE(desk_.Await(MemberDesk::Waits::kTask, [](DeskContents& desk) {
      return desk.core->NextTask().kind == sdk::TrainerTask::Kind::kCompute;
    }));
  });
  desk_.Tell([](DeskContents& desk) { desk.core->OnReply(Work()); });
  trainer.join();
}

TEST(KeptTotalsTest, OnlyLaterSumsOfTheLineageStay) {
  const auto sums = [](uint64_t lineage, uint64_t step) {
    auto made = std::make_shared<StepTotals>();
    made->after = {LineageNumber(lineage), StepNumber(step)};
    return made;
  };
  KeptTotals kept;
  for (uint64_t step = 1; step <= 3; ++step) kept.Add(sums(1, step));
  const auto has = [&](uint64_t lineage, uint64_t step) {
    return kept.Find({LineageNumber(lineage), StepNumber(step)}, 0, 0).ok();
  };
  kept.Prune(LineageNumber(1), StepNumber(1));
  EXPECT_FALSE(has(1, 1));
  EXPECT_TRUE(has(1, 2) && has(1, 3));
  EXPECT_FALSE(has(2, 3));
  EXPECT_FALSE(kept.Find({LineageNumber(1), StepNumber(3)}, 1, 2).ok()) << "it has no bucket";
  kept.Prune(LineageNumber(2), StepNumber(0));
  EXPECT_FALSE(has(1, 3));
  kept.Add(sums(2, 1));
  kept.Prune(LineageNumber(2), std::nullopt);
  EXPECT_FALSE(has(2, 1));
}

}  // namespace
}  // namespace muster::internal
