#include "worker_sdk/member/outer_loop_impl.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/muster.h"

namespace muster::internal {
namespace {

TEST(OuterLoopImplTest, RegistersSharedStateAndBuckets) {
  auto owned = std::make_unique<GroupImpl>();
  const GroupImpl& impl = *owned;
  Group group(std::move(owned));
  std::vector<float> first{1, 2, 3};
  std::vector<float> second{4, 5};
  std::vector<float> moments{6};
  DiLoCo diloco(group, {.sum = {.type = SumType::kBfloat16}, .fragments = 2});
  diloco.AddWeights("first", first);
  diloco.AddWeights("second", second);
  diloco.AddMean("moments", moments);
  EXPECT_FALSE(diloco.NextStep().has_value());  // it has no session
  EXPECT_TRUE(group.status().ok()) << group.status().message();
  EXPECT_EQ(impl.tensors().tensors(),
            (std::vector<GroupTensor>{{"first", GroupDtype::kFloat32, 3, false, 0},
                                      {"first/first-moment", GroupDtype::kFloat32, 3, false, 0},
                                      {"second", GroupDtype::kFloat32, 2, false, 0},
                                      {"second/first-moment", GroupDtype::kFloat32, 2, false, 0},
                                      {"moments", GroupDtype::kFloat32, 1, false, 0},
                                      {"outer/updates", GroupDtype::kInt64, 1, false, 0},
                                      {"outer/options: Nesterov with rate 0.7, momentum 0.9, 2 "
                                       "fragments, mixing 0, members 0",
                                       GroupDtype::kBytes, 0, false, 0},
                                      {"outer-0/change", GroupDtype::kBfloat16, 3, true, 0},
                                      {"moments/sum", GroupDtype::kFloat32, 1, true, 0},
                                      {"outer/members", GroupDtype::kFixedPoint, 1, true, 0}}));
  // The group has the shared weights, not the trainer's.
  ASSERT_EQ(impl.tensors().memory().size(), 7u);
  EXPECT_NE(static_cast<void*>(impl.tensors().memory()[0].data()), first.data());

  diloco.AddWeights("late", second);
  EXPECT_EQ(group.status().message(),
            "the weights \"late\" come after the first DiLoCo::NextStep: register them before");
}

TEST(OuterLoopImplTest, WhatItCannotUseFailsTheGroup) {
  std::vector<float> weights{1};
  const auto message = [&](const DiLoCoOptions& options, std::string_view other_state = "other") {
    Group group(std::make_unique<GroupImpl>());
    group.AddState(other_state, std::span(weights));
    DiLoCo diloco(group, options);
    diloco.AddWeights("weights", weights);
    EXPECT_FALSE(diloco.NextStep().has_value());
    return group.status().message();
  };
  EXPECT_EQ(message({.mixing = 2}), "mixing is 2; use a number from 0 to below 1");
  EXPECT_EQ(message({.outer = OuterSgd{.learning_rate = -1}}),
            "the outer optimizer's learning_rate is -1; use a number above 0, and at most 1000");
  EXPECT_EQ(message({.outer = OuterAdam{.beta2 = 1}}),
            "the outer optimizer's beta2 is 1; use a number from 0 to below 1");
  EXPECT_EQ(message({}, "weights"), "group tensor \"weights\": the name is taken; choose another");
  EXPECT_EQ(message({}), "");
}

TEST(OuterLoopImplTest, AGroupHasOneForItsWholeLife) {
  const std::string refused =
      "a second DiLoCo or LocalSgd for one group: a group has one, as long as it exists";
  Group group(std::make_unique<GroupImpl>());
  std::vector<float> weights{1};
  std::optional<DiLoCo> first(group);
  first->AddWeights("weights", weights);
  EXPECT_FALSE(first->NextStep().has_value());
  EXPECT_TRUE(group.status().ok()) << group.status().message();
  // The group still reads the state of the first one.
  first.reset();
  LocalSgd second(group);
  second.AddWeights("weights", weights);
  EXPECT_FALSE(second.NextStep().has_value());
  EXPECT_EQ(group.status().message(), refused);
}

TEST(OuterLoopImplTest, EveryOptionIsPartOfWhatMembersHaveInCommon) {
  const auto options = [](const DiLoCoOptions& options) {
    auto owned = std::make_unique<GroupImpl>();
    const GroupImpl& impl = *owned;
    Group group(std::move(owned));
    std::vector<float> first{1}, second{2};
    DiLoCo diloco(group, options);
    diloco.AddWeights("first", first);
    diloco.AddWeights("second", second);
    EXPECT_FALSE(diloco.NextStep().has_value());
    EXPECT_TRUE(group.status().ok()) << group.status().message();
    std::string all;
    const sdk::GroupTensors tensors = impl.tensors();
    for (const GroupTensor& tensor : tensors.tensors()) all += tensor.name + "\n";
    return all;
  };
  const std::vector<DiLoCoOptions> others{{},
                                          {.outer = OuterNesterov{.learning_rate = 0.6F}},
                                          {.outer = OuterNesterov{.momentum = 0.8F}},
                                          {.outer = OuterSgd{}},
                                          {.outer = OuterSgd{.learning_rate = 0.5F}},
                                          {.outer = OuterAdam{}},
                                          {.outer = OuterAdam{.learning_rate = 0.2F}},
                                          {.outer = OuterAdam{.beta1 = 0.8F}},
                                          {.outer = OuterAdam{.beta2 = 0.8F}},
                                          {.outer = OuterAdam{.epsilon = 0.2F}},
                                          {.fragments = 2},
                                          {.mixing = 0.1F},
                                          {.members = 3}};
  std::set<std::string> texts;
  for (const DiLoCoOptions& other : others) texts.insert(options(other));
  EXPECT_EQ(texts.size(), others.size());
}

TEST(OuterLoopImplTest, LocalSgdKeepsNoMomentum) {
  auto owned = std::make_unique<GroupImpl>();
  const GroupImpl& impl = *owned;
  Group group(std::move(owned));
  std::vector<float> weights{1};
  LocalSgd local(group);
  local.AddWeights("weights", weights);
  EXPECT_FALSE(local.NextStep().has_value());
  EXPECT_EQ(impl.tensors().memory().size(),
            3u);  // the weights, the number of updates, and the options
}

}  // namespace
}  // namespace muster::internal
