#include "proto/messages/group_standing.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

// The wire has the numbers.
TEST(GroupStandingTest, NumbersAndWordsStay) {
  const std::vector<std::string_view> standings = {"unknown", "waiting", "learner", "member",
                                                   "refused"};
  ASSERT_EQ(WordsOf(GroupStanding()).size(), standings.size());
  for (size_t i = 0; i < standings.size(); ++i) {
    EXPECT_EQ(ToString(static_cast<GroupStanding>(i)), standings[i]);
    EXPECT_EQ(WordsOf(GroupStanding())[i], standings[i]);
  }
  const std::vector<std::string_view> phases = {"idle",     "learning", "computing",
                                                "reducing", "voted",    "applying"};
  ASSERT_EQ(WordsOf(MemberPhase()).size(), phases.size());
  for (size_t i = 0; i < phases.size(); ++i) {
    EXPECT_EQ(ToString(static_cast<MemberPhase>(i)), phases[i]);
    EXPECT_EQ(WordsOf(MemberPhase())[i], phases[i]);
  }
}

}  // namespace
}  // namespace muster
