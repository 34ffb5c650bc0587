#include "cli/verbs/steer_verbs.h"

#include <gmock/gmock.h>

#include "cli/output.h"
#include "cli/verbs/verb_options.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SteerVerbsTest : public ::testing::Test {
 protected:
  SteerVerbsTest() {
    AddSteerVerbs(&app_, &verbs_);
    AddScalerVerbs(&app_, &verbs_);
  }
  bool Parse(const std::string& line) {
    try {
      app_.parse(line);
    } catch (const CLI::ParseError&) {
      return false;
    }
    return true;
  }

  CLI::App app_;
  SteerVerbs verbs_;
};

TEST_F(SteerVerbsTest, ArgumentsFindTheirPlaces) {
  ASSERT_TRUE(Parse("events job.yaml --kind exit --kind action --node ps-0 --after 12 -n 3 -f"));
  EXPECT_EQ(verbs_.events.query.target.job_file, "job.yaml");
  EXPECT_THAT(verbs_.events.kinds, ElementsAre("exit", "action"));
  EXPECT_EQ(verbs_.events.after, "12");
  EXPECT_TRUE(verbs_.events.follow);
  ASSERT_TRUE(Parse("restart ps-0 job.yaml --reason 'two words' --wait --timeout 7 -o json"));
  EXPECT_EQ(verbs_.restart.node, "ps-0");
  EXPECT_EQ(verbs_.restart.order.query.target.job_file, "job.yaml");
  EXPECT_EQ(verbs_.restart.order.reason, "two words");
  EXPECT_EQ(verbs_.restart.order.timeout_s, 7u);
  EXPECT_EQ(verbs_.restart.order.query.output, OutputFormat::kJson);
  ASSERT_TRUE(Parse("restart my.job worker-12"));
  EXPECT_EQ(verbs_.restart.node, "worker-12");
  EXPECT_EQ(verbs_.restart.order.query.target.job_file, "my.job");
  ASSERT_TRUE(Parse("resize jobfile ps-3 --cpus 1"));
  EXPECT_EQ(verbs_.resize.node, "ps-3");
  EXPECT_EQ(verbs_.resize.order.query.target.job_file, "jobfile");
  verbs_.resize.order.query.target.job_file.clear();
  ASSERT_TRUE(Parse("resize ps-0 --state-dir state --memory 512Mi --cpus 1.5"));
  EXPECT_EQ(verbs_.resize.memory, "512Mi");
  EXPECT_EQ(verbs_.resize.cpus, "1.5");
  ASSERT_TRUE(Parse("explain #12 job.yaml"));
  EXPECT_EQ(verbs_.explain.event, "#12");
  ASSERT_TRUE(Parse("explain job.yaml 13 -o json"));
  EXPECT_EQ(verbs_.explain.event, "13");
  EXPECT_EQ(verbs_.explain.query.target.job_file, "job.yaml");
  EXPECT_EQ(verbs_.explain.query.output, OutputFormat::kJson);
  ASSERT_TRUE(Parse("policies resume job.yaml worker-count --reason enough"));
  EXPECT_EQ(verbs_.policy.policy, "worker-count");
  EXPECT_EQ(verbs_.policy.query.target.job_file, "job.yaml");
}

TEST_F(SteerVerbsTest, TheVerbThatWasNamedIsChosen) {
  const std::string nowhere = " --state-dir /nonexistent";
  ASSERT_TRUE(Parse("policies pause out-of-memory" + nowhere));
  EXPECT_EQ(verbs_.policy.policy, "out-of-memory");
  ASSERT_TRUE(verbs_.chosen);
  EXPECT_EQ(verbs_.chosen(), kExitUnreachable);
  for (const std::string line :
       {"policies", "top", "restart ps-0", "scale --workers 2", "explain 1", "drain", "cancel"}) {
    verbs_.chosen = nullptr;
    ASSERT_TRUE(Parse(line + nowhere)) << line;
    ASSERT_TRUE(verbs_.chosen) << line;
    EXPECT_EQ(verbs_.chosen(), kExitUnreachable) << line;
  }
}

TEST_F(SteerVerbsTest, WhatIsMissingOrBeyondItsBoundsIsRefused) {
  for (const char* line :
       {"restart", "explain", "scale", "scale --workers 0", "policies pause", "restart job.yaml",
        "resize ./job", "explain job.yaml", "policies pause job.yaml", "restart ps-0 --timeout 0",
        "top --interval 0", "events --output xml"}) {
    EXPECT_FALSE(Parse(line)) << line;
  }
}

TEST_F(SteerVerbsTest, EveryVerbShowsExamples) {
  for (CLI::App* verb : app_.get_subcommands([](CLI::App*) { return true; })) {
    EXPECT_THAT(verb->help(), HasSubstr("  muster " + verb->get_name())) << verb->get_name();
  }
}

}  // namespace
}  // namespace muster
