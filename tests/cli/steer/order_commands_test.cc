#include "cli/steer/order_commands.h"

#include <nlohmann/json.hpp>

#include "cli/steer/cancel_command.h"
#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer {
namespace {

using muster::testing::IsOk;
using scaler::RestartNode;
using scaler::ScaleWorkers;
using scaler::SetPaused;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OrderCommandsTest : public testing::SteerFixture {
 protected:
  nlohmann::json Printed() const { return nlohmann::json::parse(out_); }
  OrderOptions Options() const { return {.query = Query(), .reason = "because I say so"}; }
};

TEST_F(OrderCommandsTest, ARestartIsAnEventAndItsOutcomeCanBeWaitedFor) {
  StartScaler();
  EXPECT_EQ(Call([&] { return OrderCommand({Options(), RestartNode{.node = "worker-1"}}); }),
            kExitSucceeded)
      << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("#1 action worker-1"), HasSubstr("restart"),
                          HasSubstr("because I say so")));
  EXPECT_EQ(job_.GetNode("worker-1")->start, 2u);

  job_.SettleAtOnce();
  OrderOptions patient = Options();
  patient.wait = true;
  EXPECT_EQ(Call([&] { return OrderCommand({patient, RestartNode{.node = "worker-1"}}); }),
            kExitSucceeded);
  EXPECT_THAT(out_, AllOf(HasSubstr("#2 action"), HasSubstr("#3 outcome worker-1"),
                          HasSubstr("helped (of #2)")));
  patient.query.output = OutputFormat::kJson;
  EXPECT_EQ(Call([&] { return OrderCommand({patient, RestartNode{.node = "worker-1"}}); }),
            kExitSucceeded);
  EXPECT_EQ(Printed()["event"]["id"], 4);
  EXPECT_EQ(Printed()["outcome"]["verdict"], "helped");
}

TEST_F(OrderCommandsTest, WhatThereIsNotAndRefusalsAreToldApart) {
  StartScaler();
  EXPECT_EQ(Call([&] { return OrderCommand({Options(), RestartNode{.node = "ps-9"}}); }),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("'ps-9'"));
  EXPECT_EQ(Call([&] { return OrderCommand({Options(), ScaleWorkers{9}}); }), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("budget of 8"));
  EXPECT_EQ(Call([&] { return OrderCommand({Options(), ScaleWorkers{3}}); }), kExitSucceeded);
}

TEST_F(OrderCommandsTest, WithoutAJobOrAScalerItIsSaidWhatToDo) {
  const auto restart = [&] {
    return Call([&] { return OrderCommand({Options(), RestartNode{.node = "ps-0"}}); });
  };
  EXPECT_EQ(restart(), kExitUnreachable);
  EXPECT_THAT(err_, AllOf(HasSubstr("no job runs"), HasSubstr("muster run")));
  WriteEndpoint("127.0.0.1:1");
  EXPECT_EQ(restart(), kExitUnreachable);
  EXPECT_THAT(err_, AllOf(HasSubstr("the job runs"), HasSubstr("muster logs scaler")));
  StartScaler();
  ASSERT_EQ(::chmod(state_.token().c_str(), 0644), 0);
  EXPECT_EQ(restart(), kExitUnreachable);
  EXPECT_THAT(err_, AllOf(HasSubstr(state_.token()), HasSubstr("0600")));
  ASSERT_EQ(::chmod(state_.token().c_str(), 0600), 0);
  EXPECT_EQ(restart(), kExitSucceeded);
  ASSERT_THAT(WriteFileAtomically(state_.token(), std::string(64, '0'), FileAccess::kOwnerOnly),
              IsOk());
  EXPECT_EQ(restart(), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("was the file replaced just now?"));
  StopScaler();
  EXPECT_EQ(restart(), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("nothing answers"));
}

TEST_F(OrderCommandsTest, DrainCancelAndRetryAreEventsOfTheScaler) {
  StartScaler();
  EXPECT_EQ(Call([&] { return DrainCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("(event #1)"));
  EXPECT_EQ(job_.GetJob()->state, JobState::kDraining);
  EXPECT_EQ(Call([&] {
              return CancelCommand({.query = Query(OutputFormat::kJson), .reason = "enough"});
            }),
            kExitSucceeded);
  EXPECT_EQ(Printed(), nlohmann::json({{"cancel", "asked"}, {"event", 2}}));
  EXPECT_EQ(job_.Explain(2)->event.because, "enough");
  const auto retry = [&](const std::string& id) {
    return Call([&] { return RetryCommand({.query = Query(OutputFormat::kJson), .ids = {id}}); });
  };
  EXPECT_EQ(retry("0/0/1"), kExitSucceeded);
  EXPECT_EQ(Printed(), nlohmann::json({{"retried", 1}, {"event", 3}}));
  EXPECT_EQ(retry("0/0/3"), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("not FAILED"));
  EXPECT_EQ(retry("0/0"), kExitUsage);
  EXPECT_EQ(Call([&] { return RetryCommand({.query = Query(), .ids = {}}); }), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("all FAILED shards will be tried again"));
}

TEST_F(OrderCommandsTest, WithoutAScalerTheMasterDoesIt) {
  StartMaster();
  EXPECT_EQ(Call([&] { return DrainCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_EQ(err_, "") << "no scaler ever served";
  EXPECT_THAT(out_, Not(HasSubstr("event")));
}

TEST_F(OrderCommandsTest, WithoutTheScalerThatServedTheMasterDoesIt) {
  StartMaster();
  StartScaler();
  StopScaler();
  EXPECT_EQ(
      Call([&] { return CancelCommand({.query = Query(OutputFormat::kJson), .reason = ""}); }),
      kExitSucceeded);
  EXPECT_THAT(err_, HasSubstr("the master is asked instead"));
  EXPECT_EQ(Printed(), nlohmann::json({{"cancel", "asked"}}));
}

TEST_F(OrderCommandsTest, ANodeIsDrainedThroughTheScaler) {
  StartScaler();
  DrainOptions options{.query = Query(), .reason = "", .node = "worker-0"};
  EXPECT_EQ(Call([&] { return DrainCommand(options); }), kExitSucceeded);
  EXPECT_EQ(out_, "worker-0: draining (event #1)\n");
  job_.SettleAtOnce();
  options.wait = true;
  options.query.output = OutputFormat::kJson;
  EXPECT_EQ(Call([&] { return DrainCommand(options); }), kExitSucceeded);
  EXPECT_EQ(
      Printed(),
      nlohmann::json({{"node", "worker-0"}, {"drain", "drained"}, {"left", 0}, {"event", 2}}));
  options.node = "worker-9";
  EXPECT_EQ(Call([&] { return DrainCommand(options); }), kExitUsage);
}

TEST_F(OrderCommandsTest, ADrainIsTakenBackByTheMaster) {
  StartMaster();
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSource source, FindJobSource(Query()));
  v1::ReportNodeRequest started;
  started.set_node("ps-0");
  started.set_role("ps");
  started.set_what("started");
  started.set_start(1);
  started.set_run_id("run-1");
  ASSERT_THAT(source.client->ReportNode(started), IsOk());
  const DrainOptions options{
      .query = Query(OutputFormat::kJson), .reason = "", .node = "ps-0", .undo = true};
  EXPECT_EQ(Call([&] { return DrainCommand(options); }), kExitSucceeded) << err_;
  EXPECT_EQ(Printed(), nlohmann::json({{"node", "ps-0"}, {"drain", "none"}, {"left", 0}}));
}

TEST_F(OrderCommandsTest, PoliciesAreShownPausedAndResumed) {
  StartScaler();
  EXPECT_EQ(Call([&] { return PoliciesCommand(Query()); }), kExitSucceeded);
  EXPECT_THAT(out_, AllOf(HasSubstr("out-of-memory"), HasSubstr("active"), HasSubstr("dry run"),
                          HasSubstr("60 s")));
  const auto pause = [&](const std::string& policy, bool paused) {
    return Call([&] { return OrderCommand({Options(), SetPaused{policy, paused}}); });
  };
  EXPECT_EQ(pause("out-of-memory", true), kExitSucceeded);
  EXPECT_TRUE(job_.Policies()->policies[0].paused);
  EXPECT_EQ(Call([&] { return PoliciesCommand(Query()); }), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("paused"));
  EXPECT_EQ(pause("out-of-memory", false), kExitSucceeded);
  EXPECT_FALSE(job_.Policies()->policies[0].paused);
  EXPECT_EQ(Call([&] { return PoliciesCommand(Query(OutputFormat::kJson)); }), kExitSucceeded);
  EXPECT_EQ(Printed()["policies"].size(), 2u);
  EXPECT_EQ(pause("luck", true), kExitUsage);
}

TEST(DrainCommandTest, WhatIsForOneNodeNeedsItsName) {
  EXPECT_EQ(DrainCommand({.wait = true}), kExitUsage);
  EXPECT_EQ(DrainCommand({.undo = true}), kExitUsage);
}

}  // namespace
}  // namespace muster::steer
