#include "worker_sdk/member_core/outer_loop.h"

#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using OuterKind = OuterOptimizer::Kind;
using Part = OuterLoop::Part;

constexpr LineageNumber kLineage(3);
constexpr OuterOptimizer kMomentum{
    .kind = OuterKind::kNesterov, .learning_rate = 0.7F, .momentum = 0.9F};

/// A process with its copy of everything.
class OuterMember {
 public:
  OuterMember(const OuterLoop::Options& options, std::vector<std::vector<float>> weights)
      : weights_(std::move(weights)), loop_(options) {
    for (size_t i = 0; i < weights_.size(); ++i) {
      loop_.AddWeights("w" + std::to_string(i), weights_[i]);
    }
    EXPECT_THAT(loop_.Close(), IsOk());
  }
  OuterLoop& loop() { return loop_; }
  std::vector<float>& weights(size_t piece = 0) { return weights_[piece]; }
  /// The shared weights of a piece.
  std::vector<float> Shared(size_t piece = 0) {
    for (const OuterLoop::State& state : loop_.SharedState()) {
      if (state.name == "w" + std::to_string(piece)) {
        return {state.values.begin(), state.values.end()};
      }
    }
    return {};
  }
  /// It has copied the state of another one.
  void Learn(OuterMember& from) {
    const std::vector<OuterLoop::State> state = loop_.SharedState();
    for (size_t i = 0; i < state.size(); ++i) {
      std::ranges::copy(from.loop_.SharedState()[i].values, state[i].values.begin());
    }
    loop_.updates()[0] = from.loop_.updates()[0];
  }

 private:
  std::vector<std::vector<float>> weights_;
  OuterLoop loop_;
};

using Members = std::deque<OuterMember>;
/// The loop of a member: changes its weights.
using Train = std::function<void(OuterMember& member, size_t index)>;

/// All members train, contribute, and apply the sums.
void StepOf(Members& members, StepRunNumber run, const Train& train) {
  const size_t slots = members[0].loop().Slots().size();
  std::vector<std::vector<float>> sums(slots);
  for (size_t m = 0; m < members.size(); ++m) {
    members[m].loop().BeginRun(kLineage, run);
    train(members[m], m);
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const std::span<const float> part = members[m].loop().Contribution(slot);
      sums[slot].resize(part.size());
      for (size_t i = 0; i < part.size(); ++i) sums[slot][i] += part[i];
    }
  }
  for (OuterMember& member : members) {
    member.loop().Apply(Part::kOwn, static_cast<float>(members.size()),
                        [&](uint32_t slot) { return std::span<const float>(sums[slot]); });
  }
}

constexpr float kRate = 0.1F;
/// Steps of gradient descent for (w - target)^2 / 2.
void Descend(std::vector<float>& weights, float target, int steps) {
  for (int step = 0; step < steps; ++step) {
    for (float& weight : weights) weight -= kRate * (weight - target);
  }
}
/// Where that ends.
double Descended(double weight, double target, int steps) {
  return target + std::pow(1 - kRate, steps) * (weight - target);
}

TEST(OuterLoopTest, WhatASlotHasIsCalledByTheNameOfTheTrainer) {
  std::vector<float> first{1}, second{2}, third{3}, mean{4};
  OuterLoop loop({.fragments = 2});
  loop.AddWeights("first", first);
  loop.AddWeights("second", second);
  loop.AddWeights("third", third);
  loop.AddMean("mean", mean);
  ASSERT_THAT(loop.Close(), IsOk());
  const auto what = [&] {
    return std::vector<std::string>{loop.WhatIn(0), loop.WhatIn(1), loop.WhatIn(2)};
  };
  EXPECT_THAT(what(), ElementsAre("the change of the weights \"first\"",
                                  "the change of the weights \"third\"", "the values of \"mean\""));
  ++loop.updates()[0];
  EXPECT_THAT(what(),
              ElementsAre("the change of the weights \"second\"", "", "the values of \"mean\""));
}

TEST(OuterLoopTest, LocalSgdWithOneMemberIsSgd) {
  Members members;
  members.emplace_back(OuterLoop::Options{}, std::vector<std::vector<float>>{{5, -3}});
  for (StepRunNumber run = 1; run <= 4; ++run) {
    StepOf(members, run, [](OuterMember& member, size_t) { Descend(member.weights(), 2, 10); });
  }
  EXPECT_NEAR(members[0].weights()[0], Descended(5, 2, 40), 1e-5);
  EXPECT_NEAR(members[0].weights()[1], Descended(-3, 2, 40), 1e-5);
}

/// Members with other targets and other numbers of steps: each member counts once.
TEST(OuterLoopTest, LocalSgdTakesThePlainMeanOfTheMembers) {
  Members members;
  for (int i = 0; i < 3; ++i) {
    members.emplace_back(OuterLoop::Options{}, std::vector<std::vector<float>>{{5}});
  }
  const auto target = [](size_t m) { return static_cast<float>(m); };
  const auto steps = [](size_t m) { return static_cast<int>(4 * m + 1); };
  double expected = 5;
  for (StepRunNumber run = 1; run <= 3; ++run) {
    StepOf(members, run,
           [&](OuterMember& member, size_t m) { Descend(member.weights(), target(m), steps(m)); });
    double mean = 0;
    for (size_t m = 0; m < 3; ++m) mean += Descended(expected, target(m), steps(m)) / 3;
    expected = mean;
    for (OuterMember& member : members) EXPECT_NEAR(member.weights()[0], expected, 1e-5);
  }
}

TEST(OuterLoopTest, DiLoCoFollowsTheMeanChangeWithMomentum) {
  Members members;
  for (int i = 0; i < 2; ++i) {
    members.emplace_back(OuterLoop::Options{.optimizer = kMomentum},
                         std::vector<std::vector<float>>{{4}});
  }
  double weight = 4;
  double moment = 0;
  for (StepRunNumber run = 1; run <= 60; ++run) {
    StepOf(members, run, [](OuterMember& member, size_t m) {
      Descend(member.weights(), m == 0 ? 0.0F : 2.0F, 7);
    });
    const double change = weight - (Descended(weight, 0, 7) + Descended(weight, 2, 7)) / 2;
    moment = 0.9 * moment + change;
    weight -= 0.7 * (change + 0.9 * moment);
    ASSERT_NEAR(members[1].weights()[0], weight, 1e-4) << run;
  }
  EXPECT_NEAR(weight, 1, 0.02);  // between the targets of both
}

TEST(OuterLoopTest, AllMembersHaveEqualBits) {
  Rng rng(11);
  for (const uint32_t fragments : {1u, 3u}) {
    for (const float mixing : {0.0F, 0.3F}) {
      Members members;
      for (int m = 0; m < 4; ++m) {
        members.emplace_back(
            OuterLoop::Options{.optimizer = kMomentum, .fragments = fragments, .mixing = mixing},
            std::vector<std::vector<float>>{std::vector<float>(37, 1), std::vector<float>(5, 2),
                                            std::vector<float>(16, 3), std::vector<float>(1, 4)});
      }
      for (StepRunNumber run = 1; run <= 7; ++run) {
        StepOf(members, run, [&](OuterMember& member, size_t) {
          for (size_t piece = 0; piece < 4; ++piece) {
            for (float& weight : member.weights(piece)) {
              weight += static_cast<float>(rng.Uniform()) - 0.5F;
            }
          }
        });
      }
      for (OuterMember& member : members) {
        for (size_t piece = 0; piece < 4; ++piece) {
          EXPECT_EQ(member.Shared(piece), members[0].Shared(piece));
          EXPECT_EQ(member.weights(piece), members[0].Shared(piece));
        }
      }
      EXPECT_NE(members[0].Shared(2), std::vector<float>(16, 3));
    }
  }
}

void AddTo(std::vector<float>& weights, float change) {
  for (float& weight : weights) weight += change;
}

TEST(OuterLoopTest, ARunGoesOnAndANewOneBeginsAgain) {
  OuterMember member({}, {{1}});
  member.loop().BeginRun(kLineage, 1);
  AddTo(member.weights(), 2);
  member.loop().BeginRun(kLineage, 1);
  EXPECT_TRUE(member.loop().Runs(1));
  EXPECT_THAT(member.weights(), ElementsAre(3));
  EXPECT_THAT(member.loop().Contribution(0), ElementsAre(-2));
  member.loop().BeginRun(kLineage, 2);
  EXPECT_FALSE(member.loop().Runs(1));
  EXPECT_THAT(member.weights(), ElementsAre(1));
  AddTo(member.weights(), 5);
  member.loop().ShowShared();
  EXPECT_FALSE(member.loop().Runs(2));
  EXPECT_THAT(member.weights(), ElementsAre(1));
}

OuterLoop::Options Streaming(uint32_t fragments, float mixing = 0) {
  return {.optimizer = {}, .fragments = fragments, .mixing = mixing};
}

TEST(OuterLoopTest, AStepSynchronisesOneFragment) {
  Members members;
  for (int m = 0; m < 2; ++m) {
    members.emplace_back(Streaming(2), std::vector<std::vector<float>>{{0, 0}, {0}, {0}});
  }
  // Two slots: pieces 0 and 1, and piece 2 alone.
  const std::vector<OuterLoop::Slot> slots = members[0].loop().Slots();
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].elements, 2u);
  EXPECT_EQ(slots[1].elements, 1u);
  const Train train = [](OuterMember& member, size_t m) {
    for (size_t piece = 0; piece < 3; ++piece) {
      AddTo(member.weights(piece), m == 0 ? 1.0F : 3.0F);
    }
  };
  StepOf(members, 1, train);
  EXPECT_THAT(members[1].weights(0), ElementsAre(2, 2));
  EXPECT_THAT(members[1].weights(1), ElementsAre(0));  // shared, as yet
  EXPECT_THAT(members[1].weights(2), ElementsAre(2));
  // The next loop goes on from the member's own weights.
  members[1].loop().BeginRun(kLineage, 2);
  EXPECT_THAT(members[1].weights(0), ElementsAre(2, 2));
  EXPECT_THAT(members[1].weights(1), ElementsAre(3));
  StepOf(members, 3, train);
  EXPECT_THAT(members[1].weights(0), ElementsAre(2, 2));
  EXPECT_THAT(members[1].weights(1), ElementsAre(4));  // two steps of both members
  StepOf(members, 4, train);
  EXPECT_THAT(members[1].weights(0), ElementsAre(6, 6));
  EXPECT_THAT(members[1].weights(1), ElementsAre(4));
}

TEST(OuterLoopTest, OwnWeightsGoWithAStepOfOthersAndWithALineage) {
  const auto after_own_step = [](const std::function<void(OuterMember&)>& then) {
    Members members;
    members.emplace_back(Streaming(2), std::vector<std::vector<float>>{{0}, {0}});
    StepOf(members, 1, [](OuterMember& member, size_t) {
      AddTo(member.weights(0), 1);
      AddTo(member.weights(1), 1);
    });
    then(members[0]);
    return members[0].weights(1)[0];
  };
  EXPECT_EQ(after_own_step([](OuterMember& member) { member.loop().BeginRun(kLineage, 2); }), 1);
  EXPECT_EQ(after_own_step([](OuterMember& member) {
              member.loop().ShowShared();
              EXPECT_EQ(member.weights(1)[0], 0);
              member.loop().BeginRun(kLineage, 2);
            }),
            1);
  EXPECT_EQ(
      after_own_step([](OuterMember& member) { member.loop().BeginRun(LineageNumber(4), 2); }), 0);
  const std::vector<float> zero{0};
  const auto others = [&](OuterMember& member) {
    member.loop().BeginRun(kLineage, 2);  // and then others trained on its minibatches
    member.loop().Apply(Part::kOthers, 1, [&](uint32_t) { return std::span<const float>(zero); });
    member.loop().BeginRun(kLineage, 3);
  };
  EXPECT_EQ(after_own_step(others), 0);
  EXPECT_EQ(after_own_step([](OuterMember& member) {
              OuterMember ahead(Streaming(2), {{0}, {7}});
              ahead.loop().updates()[0] = 5;
              member.Learn(ahead);
              member.loop().BeginRun(kLineage, 2);
            }),
            7);
}

TEST(OuterLoopTest, MixingCountsEachChangeOnce) {
  Members members;
  OuterLoop::Options options = Streaming(1, 0.5F);
  options.optimizer.learning_rate = 0.5F;
  members.emplace_back(options, std::vector<std::vector<float>>{{0}});
  members.emplace_back(options, std::vector<std::vector<float>>{{0}});
  // The mean change of a step is 2, whatever the members' own weights are.
  for (StepRunNumber run = 1; run <= 3; ++run) {
    StepOf(members, run,
           [](OuterMember& member, size_t m) { AddTo(member.weights(), m == 0 ? 1.0F : 3.0F); });
    EXPECT_THAT(members[0].Shared(), ElementsAre(static_cast<float>(run)));
  }
  // Its own: 1 -> (1 + 1) / 2, + 1 -> (2 + 2) / 2, + 1 -> (3 + 3) / 2; of the other: 3 -> (3 + 1) /
  // 2, ...
  for (OuterMember& member : members) member.loop().BeginRun(kLineage, 9);
  EXPECT_THAT(members[1].weights(), ElementsAre(((2 + 3 + 2) / 2.0F + 3 + 3) / 2));
  EXPECT_THAT(members[0].weights(), ElementsAre(3));
}

TEST(OuterLoopTest, ANewcomerWithMixingBeginsAtTheSharedWeights) {
  Members members;
  members.emplace_back(Streaming(1, 0.5F), std::vector<std::vector<float>>{{0}});
  StepOf(members, 1, [](OuterMember& member, size_t) { AddTo(member.weights(), 3); });
  OuterMember newcomer(Streaming(1, 0.5F), {{0}});
  newcomer.Learn(members[0]);
  newcomer.loop().BeginRun(kLineage, 1);
  EXPECT_THAT(newcomer.weights(), ElementsAre(3));
  EXPECT_THAT(newcomer.loop().Contribution(0), ElementsAre(0));
}

TEST(OuterLoopTest, AGivenNumberOfMembersDividesTheChanges) {
  Members members;
  for (int m = 0; m < 2; ++m) {
    members.emplace_back(OuterLoop::Options{.members = 4}, std::vector<std::vector<float>>{{0}});
  }
  StepOf(members, 1, [](OuterMember& member, size_t) { AddTo(member.weights(), 6); });
  EXPECT_THAT(members[0].weights(), ElementsAre(3));
}

/// Adam's first update of each fragment is as long as its rate.
TEST(OuterLoopTest, EachFragmentCountsItsUpdates) {
  Members members;
  OuterLoop::Options options = Streaming(2);
  options.optimizer = {.kind = OuterKind::kAdam,
                       .learning_rate = 1,
                       .momentum = 0.9F,
                       .beta2 = 0.9F,
                       .epsilon = 1e-6F};
  members.emplace_back(options, std::vector<std::vector<float>>{{0}, {0}});
  const Train train = [](OuterMember& member, size_t) {
    AddTo(member.weights(0), 3);
    AddTo(member.weights(1), 3);
  };
  StepOf(members, 1, train);
  StepOf(members, 2, train);
  EXPECT_NEAR(members[0].weights(0)[0], 1, 1e-5);
  EXPECT_NEAR(members[0].weights(1)[0], 1, 1e-5);
}

TEST(OuterLoopTest, AMeanIsOverTheMembersThatTrainedWhateverTheOptionSays) {
  std::vector<float> weights{0}, mean{0};
  OuterLoop loop({.members = 4});
  loop.AddWeights("weights", weights);
  loop.AddMean("mean", mean);
  ASSERT_THAT(loop.Close(), IsOk());
  const std::vector<float> change{-8}, values{6};
  loop.Apply(Part::kOthers, 2,
             [&](uint32_t slot) { return std::span<const float>(slot == 0 ? change : values); });
  EXPECT_THAT(weights, ElementsAre(2)) << "divided by the option";
  EXPECT_THAT(mean, ElementsAre(3)) << "divided by the count";
}

TEST(OuterLoopTest, MeansHaveNoOptimizer) {
  std::vector<float> weights{1};
  std::vector<float> moments{1, 2};
  OuterLoop loop({.optimizer = kMomentum});
  loop.AddWeights("weights", weights);
  loop.AddMean("moments", moments);
  ASSERT_THAT(loop.Close(), IsOk());
  const std::vector<OuterLoop::Slot> slots = loop.Slots();
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[1].name, "moments/sum");
  EXPECT_TRUE(slots[1].exact);
  EXPECT_FALSE(slots[0].exact);
  loop.BeginRun(kLineage, 1);
  moments = {5, 6};
  EXPECT_THAT(loop.Contribution(1), ElementsAre(5, 6));
  const std::vector<std::vector<float>> sums{{0}, {8, 2}};
  loop.Apply(Part::kOwn, 4, [&](uint32_t slot) { return std::span<const float>(sums[slot]); });
  EXPECT_THAT(moments, ElementsAre(2, 0.5F));
  moments = {9, 9};
  loop.BeginRun(kLineage, 2);
  EXPECT_THAT(moments, ElementsAre(2, 0.5F));
}

TEST(OuterLoopTest, TheStateIsTheSharedWeightsAndTheMoments) {
  std::vector<float> weights{1, 2};
  OuterLoop loop(
      {.optimizer = {
           .kind = OuterKind::kAdam, .learning_rate = 1, .momentum = 0, .beta2 = 0, .epsilon = 1}});
  loop.AddWeights("weights", weights);
  weights = {3, 4};  // the initial weights are those at Close
  ASSERT_THAT(loop.Close(), IsOk());
  const std::vector<OuterLoop::State> state = loop.SharedState();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[0].name, "weights");
  EXPECT_THAT(state[0].values, ElementsAre(3, 4));
  EXPECT_EQ(state[1].name, "weights/first-moment");
  EXPECT_EQ(state[2].name, "weights/second-moment");
}

TEST(OuterLoopTest, OptionsHaveBounds) {
  const auto closed = [](const OuterLoop::Options& options, size_t pieces, size_t elements = 1) {
    std::vector<float> weights(elements);
    OuterLoop loop(options);
    for (size_t i = 0; i < pieces; ++i) loop.AddWeights("w" + std::to_string(i), weights);
    return loop.Close();
  };
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(closed(Streaming(2), 2), IsOk());
  EXPECT_THAT(closed(Streaming(0), 2), invalid("there are 0 fragments"));
  EXPECT_THAT(closed(Streaming(3), 2), invalid("2 pieces of weights"));
  EXPECT_THAT(closed(Streaming(1025), 1025), invalid("1 to 1024"));
  EXPECT_THAT(closed({}, 0), invalid("0 pieces"));
  EXPECT_THAT(closed({}, 1, 0), invalid("no elements"));
  EXPECT_THAT(closed({.members = 1025}, 1), invalid("members is 1025"));
  EXPECT_THAT(closed(Streaming(1, 1), 1), invalid("mixing is 1"));
  EXPECT_THAT(closed(Streaming(1, -0.5F), 1), invalid("mixing is -0.5"));
  EXPECT_THAT(closed(Streaming(1, std::numeric_limits<float>::quiet_NaN()), 1),
              invalid("mixing is nan"));
  EXPECT_THAT(closed({.optimizer = {.kind = OuterKind::kSgd, .learning_rate = 0}}, 1),
              invalid("learning_rate is 0"));
}

}  // namespace
}  // namespace muster::sdk
