#include <gtest/gtest.h>

#include <string>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

/// Which of its commands a line of `policies` comes to, and with what.
struct ChosenOfPolicies {
  std::string command;  // "": the line is refused
  QueryOptions query;
  steer::OrderOptions options;
  scaler::SetPaused order;
};

ChosenOfPolicies Policies(const std::string& line) {
  CLI::App app;
  Chosen chosen;
  ChosenOfPolicies named;
  AddPolicies(
      &app, &chosen,
      [&named](const QueryOptions& options) {
        named = {.command = "list", .query = options, .options = {}, .order = {}};
        return 0;
      },
      [&named](const steer::GivenOrder& given) {
        const auto& order = std::get<scaler::SetPaused>(*given.order);
        named = {.command = order.paused ? "pause" : "resume",
                 .query = {},
                 .options = given.options,
                 .order = order};
        return 0;
      });
  try {
    app.parse(line);
  } catch (const CLI::ParseError&) {
    return {};
  }
  if (chosen) chosen();
  return named;
}

TEST(PoliciesVerbTest, TheCommandThatWasNamedIsChosen) {
  const ChosenOfPolicies list = Policies("policies job.yaml");
  EXPECT_EQ(list.command, "list");
  EXPECT_EQ(list.query.target.job_file, "job.yaml");
  const ChosenOfPolicies pause = Policies("policies pause out-of-memory --state-dir state");
  EXPECT_EQ(pause.command, "pause");
  EXPECT_EQ(pause.order.policy, "out-of-memory");
  EXPECT_EQ(pause.options.query.target.state_directory, "state");
  const ChosenOfPolicies resume = Policies("policies resume job.yaml worker-count --reason enough");
  EXPECT_EQ(resume.command, "resume");
  EXPECT_EQ(resume.order.policy, "worker-count");
  EXPECT_EQ(resume.options.query.target.job_file, "job.yaml");
  EXPECT_EQ(resume.options.reason, "enough");
}

TEST(PoliciesVerbTest, APolicyMustBeNamed) {
  for (const char* line : {"policies pause", "policies pause job.yaml"}) {
    EXPECT_EQ(Policies(line).command, "") << line;
  }
}

}  // namespace
}  // namespace muster
