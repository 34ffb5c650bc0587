#include "cli/steer/patience.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/fake_clock.h"

namespace muster::steer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(PatienceTest, SpeaksEveryTwoSecondsAndEnds) {
  muster::testing::FakeClock clock;
  std::vector<std::string> said;
  Patience patience({.limit = seconds(5),
                     .pause = [&] { clock.Advance(milliseconds(500)); },
                     .say = [&](std::string_view words) { said.emplace_back(words); }},
                    &clock);
  int looks = 0;
  while (patience.Wait("Godot")) ++looks;
  EXPECT_EQ(looks, 10);
  EXPECT_THAT(said, ElementsAre("waiting for Godot, 2 s", "waiting for Godot, 4 s"));
}

TEST(PatienceTest, WithoutALimitItHasNoEnd) {
  muster::testing::FakeClock clock;
  Patience patience({.limit = std::nullopt,
                     .pause = [&] { clock.Advance(seconds(1'000)); },
                     .say = [](std::string_view) {}},
                    &clock);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(patience.Wait("Godot"));
}

}  // namespace
}  // namespace muster::steer
