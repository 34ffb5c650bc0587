#include <gmock/gmock.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(EventsVerbTest, ArgumentsFindTheirPlaces) {
  const auto options = Parsed<steer::EventsOptions>(
      AddEvents, "events job.yaml --kind exit --kind action --node ps-0 --after 12 -n 3 -f");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->query.target.job_file, "job.yaml");
  EXPECT_THAT(options->kinds, ElementsAre("exit", "action"));
  EXPECT_EQ(options->node, "ps-0");
  EXPECT_EQ(options->after, "12");
  EXPECT_EQ(options->last, 3u);
  EXPECT_TRUE(options->follow);
  EXPECT_FALSE(Parsed<steer::EventsOptions>(AddEvents, "events --output xml").has_value());
}

}  // namespace
}  // namespace muster
