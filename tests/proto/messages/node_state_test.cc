#include "proto/messages/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr NodeState kStates[] = {NodeState::kPlanned,  NodeState::kStarting, NodeState::kRunning,
                                 NodeState::kLost,     NodeState::kDraining, NodeState::kExited,
                                 NodeState::kFinished, NodeState::kWaiting};

TEST(NodeStateTest, WordsAreReadAsTheyAreWritten) {
  for (const NodeState state : kStates) EXPECT_EQ(ParseNodeState(ToString(state)), state);
  EXPECT_EQ(ToString(NodeState::kLost), "lost");
  EXPECT_EQ(ParseNodeState(""), std::nullopt);
  EXPECT_EQ(ParseNodeState("asleep"), std::nullopt);
}

TEST(NodeStateTest, DrainsAreReadAsTheyAreWritten) {
  EXPECT_THAT(WordsOf(DrainState()), ElementsAre("none", "draining", "drained"));
  for (const std::string_view word : WordsOf(DrainState())) {
    DrainState state = DrainState::kNone;
    EXPECT_TRUE(FromWord(word, &state)) << word;
    EXPECT_EQ(ToString(state), word);
  }
  DrainState state = DrainState::kDrained;
  EXPECT_FALSE(FromWord("", &state));
  EXPECT_EQ(state, DrainState::kDrained) << "left alone";
}

// They are on disk in histories.
TEST(NodeStateTest, NumbersStay) {
  for (int i = 0; i < 8; ++i) EXPECT_EQ(static_cast<int>(kStates[i]), i);
}

TEST(NodeStateTest, WhatTheMasterLearns) {
  using enum NodeState;
  constexpr auto kYes = NodeSpeaks::kYes;
  struct Case {
    NodeNews news;
    NodeState starting, running, lost, exited;  // after it was that
  };
  const Case cases[] = {
      {NodeNews::kToldStarted, kStarting, kRunning, kStarting, kStarting},
      {NodeNews::kHeard, kRunning, kRunning, kRunning, kRunning},
      {NodeNews::kSilent, kStarting, kLost, kLost, kExited},
      {NodeNews::kToldExited, kExited, kExited, kExited, kExited},
      {NodeNews::kRunBegan, kExited, kExited, kExited, kExited},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(StateAfter(kStarting, c.news, kYes), c.starting) << static_cast<int>(c.news);
    EXPECT_EQ(StateAfter(kRunning, c.news, kYes), c.running) << static_cast<int>(c.news);
    EXPECT_EQ(StateAfter(kLost, c.news, kYes), c.lost) << static_cast<int>(c.news);
    EXPECT_EQ(StateAfter(kExited, c.news, kYes), c.exited) << static_cast<int>(c.news);
  }
}

TEST(NodeStateTest, WhoDoesNotSpeakRunsFromTheWordOfOthers) {
  for (const NodeState now : {NodeState::kStarting, NodeState::kRunning, NodeState::kExited}) {
    EXPECT_EQ(StateAfter(now, NodeNews::kToldStarted, NodeSpeaks::kNo), NodeState::kRunning);
  }
  EXPECT_EQ(StateAfter(NodeState::kRunning, NodeNews::kToldExited, NodeSpeaks::kNo),
            NodeState::kExited);
}

}  // namespace
}  // namespace muster
