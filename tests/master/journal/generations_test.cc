#include "master/journal/generations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using What = StartChoice::What;

Generation Complete(uint64_t number, std::string machine = "here", std::string starter = "run-1") {
  return {number,           /*complete=*/true,  /*owned=*/true,
          /*closed=*/false, std::move(machine), std::move(starter)};
}

StartFacts Facts(std::vector<Generation> generations) {
  return {.generations = std::move(generations), .machine = "here", .starter = "run-2"};
}

TEST(ChooseGeneration, AnEmptyFolderAndAnOldJournalAreAdopted) {
  EXPECT_EQ(ChooseGeneration(Facts({})), (StartChoice{What::kAdopt, 1, 0}));
  EXPECT_EQ(ChooseGeneration(Facts({{.number = 1, .complete = true}})),
            (StartChoice{What::kAdopt, 1, 0}));
  EXPECT_EQ(ChooseGeneration(Facts({{.number = 1, .complete = true}, {.number = 2}})),
            (StartChoice{What::kTakeOver, 3, 1}))
      << "somebody takes it over, so it is closed or will be";
}

TEST(ChooseGeneration, ARestartOnTheSameMachineGoesOnInPlace) {
  EXPECT_EQ(ChooseGeneration(Facts({Complete(1)})), (StartChoice{What::kContinue, 1, 0}));
  EXPECT_EQ(ChooseGeneration(Facts({Complete(1, "there"), Complete(2)})),
            (StartChoice{What::kContinue, 2, 0}));
  StartFacts told = Facts({Complete(1)});
  told.take_over = true;
  EXPECT_EQ(ChooseGeneration(told), (StartChoice{What::kContinue, 1, 0})) << "its master is dead";
}

TEST(ChooseGeneration, AnotherMachineMakesANewGeneration) {
  EXPECT_EQ(ChooseGeneration(Facts({Complete(1, "there")})), (StartChoice{What::kTakeOver, 2, 1}));
  StartFacts unknown = Facts({Complete(1, "")});
  unknown.machine.clear();
  EXPECT_EQ(ChooseGeneration(unknown), (StartChoice{What::kTakeOver, 2, 1}))
      << "a machine without a name may be any";
}

TEST(ChooseGeneration, AClosedOrUnfinishedOneIsNotContinued) {
  Generation closed = Complete(1);
  closed.closed = true;
  EXPECT_EQ(ChooseGeneration(Facts({closed, {.number = 2}})), (StartChoice{What::kTakeOver, 3, 1}));
  EXPECT_EQ(ChooseGeneration(Facts({closed})), (StartChoice{What::kTakeOver, 2, 1}));
  EXPECT_EQ(ChooseGeneration(Facts({Complete(1), {.number = 2}})),
            (StartChoice{What::kTakeOver, 3, 1}));
  EXPECT_EQ(ChooseGeneration(Facts({{.number = 2}})), (StartChoice{What::kTakeOver, 3, 0}));
}

TEST(ChooseGeneration, ALockProtectsUnlessTheJobIsTaken) {
  StartFacts locked = Facts({Complete(1)});
  locked.locked = true;
  EXPECT_EQ(ChooseGeneration(locked).what, What::kLocked);
  locked.take_over = true;
  EXPECT_EQ(ChooseGeneration(locked), (StartChoice{What::kTakeOver, 2, 1}));
}

TEST(ChooseGeneration, AMasterThatLostTheJobDoesNotTakeItBack) {
  StartFacts lost = Facts({Complete(1, "here", "run-2"), Complete(2, "there", "run-3")});
  EXPECT_EQ(ChooseGeneration(lost).what, What::kSuperseded);
  lost.take_over = true;
  EXPECT_EQ(ChooseGeneration(lost).what, What::kSuperseded);
  lost.starter = "run-4";
  EXPECT_EQ(ChooseGeneration(lost), (StartChoice{What::kTakeOver, 3, 2})) << "a person may";
  lost.superseded = {"run-0", "run-4"};
  EXPECT_EQ(ChooseGeneration(lost).what, What::kSuperseded) << "its generation is gone";
}

TEST(Generations, AllBeforeTheSourceMayGo) {
  const std::vector<Generation> all = {
      Complete(1), {.number = 2}, Complete(3), {.number = 4}, Complete(5)};
  EXPECT_THAT(Removable(all, 5, 3), ElementsAre(1, 2));
  EXPECT_THAT(Removable(all, 5, 0), ElementsAre());
  std::vector<Generation> closed = all;
  closed[3].closed = true;
  EXPECT_THAT(Removable(closed, 5, 3), ElementsAre(1, 2, 4)) << "a copy that was not finished";
  EXPECT_THAT(Removable(closed, 5, 0), ElementsAre());
  EXPECT_EQ(NewestComplete(all)->number, 5u);
  EXPECT_EQ(NewestComplete({{.number = 2}}), nullptr);
}

}  // namespace
}  // namespace muster
