#include "cli/steer/top_command.h"

#include <nlohmann/json.hpp>

#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TopCommandTest : public testing::SteerFixture {
 protected:
  int Top(bool once, OutputFormat output = OutputFormat::kText) {
    return Call(
        [&] { return TopCommand({.query = Query(output), .interval_s = 0.001, .once = once}); });
  }
};

TEST_F(TopCommandTest, OnceAndInPlainText) {
  StartScaler();
  job_.AddEvent();
  EXPECT_EQ(Top(true), kExitSucceeded);
  EXPECT_THAT(out_, AllOf(HasSubstr("flights  running"), HasSubstr("worker-1"), HasSubstr("ps-0"),
                          HasSubstr("#1 decision")));
  EXPECT_EQ(Top(true, OutputFormat::kJson), kExitSucceeded);
  const nlohmann::json json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["job"]["name"], "flights");
  EXPECT_EQ(json["nodes"].size(), 5u);
  EXPECT_EQ(json["events"][0]["id"], 1);
}

TEST_F(TopCommandTest, StatusHasTheRateThatTheScalerMeasures) {
  StartMaster();
  EXPECT_EQ(Call([&] { return StatusCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_THAT(out_, ::testing::Not(HasSubstr("records/s"))) << "it is not measured";
  StartScaler();
  EXPECT_EQ(Call([&] { return StatusCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("197 records/s, 1:21 left"));
  StopScaler();
  EXPECT_EQ(Call([&] { return StatusCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_EQ(err_, "") << "the master has answered";
}

TEST_F(TopCommandTest, EndsWithTheJob) {
  StartScaler();
  ASSERT_THAT(job_.Give({scaler::CancelJob{}, "enough"}), muster::testing::IsOk());
  EXPECT_EQ(Top(false), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("flights  cancelled"));
}

TEST_F(TopCommandTest, WithoutAJobOrAnAnswerItSaysSo) {
  EXPECT_EQ(Top(false), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("no job runs"));
  StartScaler();
  job_.Fail(absl::UnavailableError("the master is away"));
  EXPECT_EQ(Top(false), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("the master is away"));
  StopScaler();
  EXPECT_EQ(Top(false), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("nothing answers"));
}

}  // namespace
}  // namespace muster::steer
