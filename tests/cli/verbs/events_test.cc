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
  const auto word = Parsed<steer::EventsOptions>(AddEvents, "events worker-1 job.yaml --no-wait");
  ASSERT_TRUE(word.has_value());
  EXPECT_EQ(word->node, "worker-1");
  EXPECT_EQ(word->query.target.job_file, "job.yaml");
  EXPECT_TRUE(word->query.no_wait);
  EXPECT_FALSE(options->query.no_wait);
  EXPECT_FALSE(Parsed<steer::EventsOptions>(AddEvents, "events --output xml").has_value());
  EXPECT_FALSE(Parsed<steer::EventsOptions>(AddEvents, "events --kind bogus").has_value());
  EXPECT_TRUE(Parsed<steer::EventsOptions>(AddEvents, "events --kind node-exited").has_value());
}

}  // namespace
}  // namespace muster
