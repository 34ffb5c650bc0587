#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cli/show/output.h"
#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNowhere[] = " --state-dir /nonexistent";

class VerbsTest : public ::testing::Test {
 protected:
  VerbsTest() { AddVerbs(&app_, &chosen_); }
  bool Parse(const std::string& line) {
    chosen_ = nullptr;
    try {
      app_.parse(line);
    } catch (const CLI::ParseError&) {
      return false;
    }
    return true;
  }
  std::vector<CLI::App*> All() {
    return app_.get_subcommands([](CLI::App*) { return true; });
  }

  CLI::App app_;
  Chosen chosen_;
};

TEST_F(VerbsTest, HelpShowsThemInThisOrder) {
  std::vector<std::string> names;
  for (const CLI::App* verb : All()) names.push_back(verb->get_name());
  EXPECT_THAT(names, ElementsAre("run", "train", "predict", "evaluate", "join", "manifests", "list",
                                 "status", "nodes", "partitions", "export", "tensorboard",
                                 "compare", "shards", "logs", "stacks", "wait", "events", "drain",
                                 "cancel", "simulate", "explain", "top", "dashboard", "restart",
                                 "resize", "scale", "policies", "master", "ps", "scaler", "node",
                                 "serve-export", "verify", "help", "version", "completion"));
}

TEST_F(VerbsTest, TheVerbThatWasNamedIsChosen) {
  for (const std::string line :
       {"policies", "policies pause hang", "policies resume hang", "top", "dashboard",
        "restart ps-0", "resize ps-0 --cpus 1", "scale --workers 2", "explain 1", "drain", "cancel",
        "status", "nodes", "partitions", "shards", "shards --retry"}) {
    ASSERT_TRUE(Parse(line + kNowhere)) << line;
    ASSERT_TRUE(chosen_) << line;
    EXPECT_EQ(chosen_(), kExitUnreachable) << line;
  }
}

TEST_F(VerbsTest, WhatIsMissingOrBeyondItsBoundsIsRefused) {
  for (const char* line :
       {"scale", "scale --workers 0", "top --interval 0", "partitions --limit 0", "export",
        "tensorboard", "compare state", "ps --name ps-0",
        "ps --name ps-0 --master 127.0.0.1:1 --threads 0", "master", "scaler", "drain --timeout 0",
        "verify --kills 4000000000", "verify --planted-bug none-such"}) {
    EXPECT_FALSE(Parse(line)) << line;
    EXPECT_FALSE(chosen_) << line;
  }
}

TEST_F(VerbsTest, AnyNumberOfJobsIsCompared) {
  const auto options = Parsed<metrics::CompareOptions>(AddCompare, "compare a b.yaml c");
  ASSERT_TRUE(options.has_value());
  EXPECT_THAT(options->jobs, ElementsAre("a", "b.yaml", "c"));
}

TEST_F(VerbsTest, EveryVerbShowsExamples) {
  for (const CLI::App* verb : All()) {
    EXPECT_THAT(verb->help(), HasSubstr("  muster " + verb->get_name())) << verb->get_name();
  }
}

}  // namespace
}  // namespace muster
