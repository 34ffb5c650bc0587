#include "cli/steer/order_commands.h"

#include <nlohmann/json.hpp>

#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer {
namespace {

using muster::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OrderCommandsTest : public testing::SteerFixture {
 protected:
  nlohmann::json Printed() const { return nlohmann::json::parse(out_); }
  OrderOptions Order(OutputFormat output = OutputFormat::kText) const {
    return {.query = Query(output), .reason = "because I say so"};
  }
};

TEST_F(OrderCommandsTest, ARestartIsAnEventAndItsOutcomeCanBeWaitedFor) {
  StartScaler();
  EXPECT_EQ(Call([&] { return RestartCommand({.order = Order(), .node = "worker-1"}); }),
            kExitSucceeded)
      << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("#1 action worker-1"), HasSubstr("relaunch"),
                          HasSubstr("because I say so")));
  EXPECT_EQ(job_.GetNode("worker-1")->start, 2u);

  job_.SettleAtOnce();
  OrderOptions patient = Order();
  patient.wait = true;
  EXPECT_EQ(Call([&] { return RestartCommand({.order = patient, .node = "worker-1"}); }),
            kExitSucceeded);
  EXPECT_THAT(out_, AllOf(HasSubstr("#2 action"), HasSubstr("#3 outcome worker-1"),
                          HasSubstr("helped (of #2)")));
  patient.query.output = OutputFormat::kJson;
  EXPECT_EQ(Call([&] { return RestartCommand({.order = patient, .node = "worker-1"}); }),
            kExitSucceeded);
  EXPECT_EQ(Printed()["event"]["id"], 4);
  EXPECT_EQ(Printed()["outcome"]["verdict"], "helped");
}

TEST_F(OrderCommandsTest, ResizeReadsAmountsAsJobFilesHaveThem) {
  StartScaler();
  EXPECT_EQ(
      Call([&] {
        return ResizeCommand({.order = Order(), .node = "ps-0", .memory = "1.5Gi", .cpus = "500m"});
      }),
      kExitSucceeded)
      << err_;
  EXPECT_EQ(job_.GetNode("ps-0")->limits.memory_bytes, 1536u << 20);
  EXPECT_EQ(job_.GetNode("ps-0")->limits.cpus, 0.5);
  EXPECT_EQ(Call([&] {
              return ResizeCommand({.order = Order(), .node = "ps-0", .memory = "", .cpus = "2"});
            }),
            kExitSucceeded);
  EXPECT_EQ(job_.GetNode("ps-0")->limits.memory_bytes, 1536u << 20) << "nobody asked for it";
}

TEST_F(OrderCommandsTest, WrongArgumentsAndRefusalsAreToldApart) {
  StartScaler();
  const auto resize = [&](const std::string& memory, const std::string& cpus) {
    return Call([&] {
      return ResizeCommand({.order = Order(), .node = "ps-0", .memory = memory, .cpus = cpus});
    });
  };
  EXPECT_EQ(resize("", ""), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--memory 512Mi"));
  EXPECT_EQ(resize("lots", ""), kExitUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("--memory"), HasSubstr("'lots'")));
  EXPECT_EQ(resize("", "-1"), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--cpus"));
  EXPECT_EQ(Call([&] { return RestartCommand({.order = Order(), .node = "ps-9"}); }), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("'ps-9'"));
  EXPECT_EQ(Call([&] { return ScaleCommand({.order = Order(), .workers = 9}); }), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("budget of 8"));
  EXPECT_EQ(Call([&] { return ScaleCommand({.order = Order(), .workers = 3}); }), kExitSucceeded);
}

TEST_F(OrderCommandsTest, WithoutAJobOrAScalerItIsSaidWhatToDo) {
  const auto restart = [&] {
    return Call([&] { return RestartCommand({.order = Order(), .node = "ps-0"}); });
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
  EXPECT_THAT(err_, HasSubstr("nobody answers"));
}

TEST_F(OrderCommandsTest, DrainCancelAndRetryAreEventsOfTheScaler) {
  StartScaler();
  EXPECT_EQ(Call([&] { return DrainCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("(event #1)"));
  EXPECT_EQ(job_.GetJob()->state, "draining");
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

TEST_F(OrderCommandsTest, PoliciesAreShownPausedAndResumed) {
  StartScaler();
  EXPECT_EQ(Call([&] { return PoliciesCommand(Query()); }), kExitSucceeded);
  EXPECT_THAT(out_, AllOf(HasSubstr("out-of-memory"), HasSubstr("active"), HasSubstr("dry run"),
                          HasSubstr("60 s")));
  const PausePolicyOptions options{.query = Query(), .reason = "shared", .policy = "out-of-memory"};
  EXPECT_EQ(Call([&] { return PausePolicyCommand(options); }), kExitSucceeded);
  EXPECT_TRUE(job_.Policies()->policies[0].paused);
  EXPECT_EQ(Call([&] { return PoliciesCommand(Query()); }), kExitSucceeded);
  EXPECT_THAT(out_, HasSubstr("paused"));
  EXPECT_EQ(Call([&] { return ResumePolicyCommand(options); }), kExitSucceeded);
  EXPECT_FALSE(job_.Policies()->policies[0].paused);
  EXPECT_EQ(Call([&] { return PoliciesCommand(Query(OutputFormat::kJson)); }), kExitSucceeded);
  EXPECT_EQ(Printed()["policies"].size(), 2u);
  EXPECT_EQ(Call([&] { return PausePolicyCommand({.query = Query(), .policy = "luck"}); }),
            kExitUsage);
}

TEST(DrainCommandTest, WhatIsForOneNodeNeedsItsName) {
  EXPECT_EQ(DrainCommand({.wait = true}), kExitUsage);
  EXPECT_EQ(DrainCommand({.undo = true}), kExitUsage);
}

}  // namespace
}  // namespace muster::steer
