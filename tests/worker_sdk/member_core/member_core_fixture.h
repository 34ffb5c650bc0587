#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "worker_sdk/member_core/member_core.h"

namespace muster::sdk {

using Kind = TrainerTask::Kind;
inline constexpr auto kTook = std::chrono::microseconds(100);

inline GroupExchangeReply Reply(uint64_t news, GroupStanding standing) {
  GroupExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(1);
  reply.news = news;
  reply.standing = standing;
  return reply;
}

/// A member "a" of "a" and "b"; each attempt gives it the minibatches of `share`.
class MemberCoreTest : public ::testing::Test {
 protected:
  GroupExchangeReply Member(uint64_t attempt, uint64_t step, uint64_t step_attempt,
                            std::vector<MinibatchSpan> share) {
    GroupExchangeReply reply = Reply(++news_, GroupStanding::kMember);
    reply.lineage = LineageNumber(1);
    reply.initial_is_base = true;
    reply.attempt = AttemptNumber(attempt);
    reply.members = {{"a", 1, {}}, {"b", 2, {}}};
    reply.step = StepNumber(step);
    reply.step_attempt = AttemptNumber(step_attempt);
    reply.work = StepWork{.step = StepNumber(step + 1)};
    reply.work->shard.index = ShardIndex(step);
    reply.work->share = {std::move(share)};
    return reply;
  }
  void Compute(std::vector<uint32_t> minibatches) {
    StepRunNumber run = core_.run();
    for (uint32_t i : minibatches) {
      ASSERT_TRUE(core_.StartMinibatch(run, MinibatchIndex(i)));
      core_.OnMinibatch(run, MinibatchIndex(i), kTook);
    }
    core_.OnComputed(run, {.records = minibatches.size()});
  }
  /// Step 1 in attempt 1, up to the vote.
  void VoteOnStepOne() {
    core_.OnReply(Member(1, 0, 0, kTwo));
    ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
    Compute({0, 1});
    core_.OnSum(AttemptNumber(1), StepNumber(1), 77);
    ASSERT_TRUE(core_.Request().sum.has_value());
  }
  StateLabel Label(uint64_t lineage, uint64_t step) {
    return {LineageNumber(lineage), StepNumber(step)};
  }
  GroupExchangeReply Learner(uint64_t step) {
    GroupExchangeReply reply = Member(9, step, 8, {});
    reply.standing = GroupStanding::kLearner;
    reply.members = {{"b", 2, {}}};
    reply.work.reset();
    return reply;
  }

  /// What has been ordered and was not taken yet.
  MemberEffects& Effects() {
    effects_.Add(core_.TakeEffects(now_));
    return effects_;
  }
  std::optional<GroupTransfer> TakeTransfer() {
    return std::exchange(Effects().transfer, std::nullopt);
  }
  std::optional<CaptureOrder> TakeCapture() {
    return std::exchange(Effects().capture, std::nullopt);
  }
  std::optional<StateLabel> TakeDigest() { return std::exchange(Effects().digest, std::nullopt); }

  static inline const std::vector<MinibatchSpan> kTwo{{MinibatchIndex(0), 2}};
  MemberCore core_{{.worker = "a", .incarnation = 1, .introduction = {{}, 5, {"unix:/a"}}}};
  MemberEffects effects_;
  uint64_t news_ = 0;
  TimePoint now_{};
};

}  // namespace muster::sdk
