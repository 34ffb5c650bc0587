#include "cli/steer/cancel_command.h"

#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WhatFirstTest, APersonIsAskedAndAScriptNeverWaits) {
  EXPECT_EQ(WhatFirst(std::nullopt, 5, true), BeforeCancel::kAsk);
  EXPECT_EQ(WhatFirst(std::nullopt, 5, false), BeforeCancel::kNothing);
  EXPECT_EQ(WhatFirst(true, 5, false), BeforeCancel::kSnapshot);
  EXPECT_EQ(WhatFirst(false, 5, true), BeforeCancel::kNothing);
  EXPECT_EQ(WhatFirst(std::nullopt, 0, true), BeforeCancel::kNothing) << "nothing is lost";
  EXPECT_EQ(WhatFirst(true, 0, true), BeforeCancel::kNothing);
}

TEST(ParseAnswerTest, YesIsTheDefault) {
  EXPECT_EQ(ParseAnswer(""), BeforeCancel::kSnapshot);
  EXPECT_EQ(ParseAnswer("yes"), BeforeCancel::kSnapshot);
  EXPECT_EQ(ParseAnswer("n"), BeforeCancel::kNothing);
  EXPECT_EQ(ParseAnswer("q"), BeforeCancel::kQuit);
  EXPECT_EQ(ParseAnswer("perhaps"), std::nullopt);
}

using CancelCommandTest = testing::SteerFixture;

TEST_F(CancelCommandTest, AJobWithoutUncommittedWorkIsCancelledAtOnce) {
  StartMaster();
  EXPECT_EQ(Call([&] { return CancelCommand({.query = Query()}); }), kExitSucceeded) << err_;
  EXPECT_THAT(out_, HasSubstr("cancelled; what is committed stays"));
  EXPECT_THAT(err_, Not(HasSubstr("not committed")));
}

}  // namespace
}  // namespace muster::steer
