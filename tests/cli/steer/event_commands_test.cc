#include "cli/steer/event_commands.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "scaler/decision/log/event_log.h"
#include "scaler/model/model_json.h"
#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EventCommandsTest : public testing::SteerFixture {
 protected:
  /// A scaler of this job has left events 1 and 2 on disk.
  void LeaveEvents() {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto log,
                                scaler::EventLog::Open(state_.scaler(), {}, &clock_));
    log->Append({.kind = "exit", .target = "ps-0", .because = "killed"});
    log->Append({.kind = "decision", .target = "ps-0", .because = "more", .cause_id = 1});
  }
  /// Numbers of the scaler's events among what was printed as JSON; 0 for the master's. All of it
  /// has one shape.
  std::vector<int> Ids() const {
    std::vector<int> ids;
    std::istringstream lines(out_);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json event = nlohmann::json::parse(line);
      std::vector<std::string> fields;
      for (const auto& [name, value] : event.items()) fields.push_back(name);
      EXPECT_THAT(fields, ElementsAre("event", "id", "kind", "node", "sequence", "source", "text",
                                      "time", "wall_us"));
      const bool scaler = event["source"] == "scaler";
      EXPECT_EQ(scaler, event["sequence"].is_null());
      EXPECT_EQ(scaler, event["event"].is_object());
      ids.push_back(scaler ? event["id"].get<int>() : 0);
    }
    return ids;
  }
  int Events(EventsOptions options) {
    options.query = Query(OutputFormat::kJson);
    return Call([&] { return EventsCommand(options); });
  }
  int Explain(const std::string& event, OutputFormat output = OutputFormat::kText) {
    return Call([&] { return ExplainCommand({.query = Query(output), .event = event}); });
  }
};

TEST_F(EventCommandsTest, OneStoryOfMasterAndScaler) {
  StartMaster();
  StartScaler();
  job_.AddEvent();  // of 2026-01-01, like all of this stand-in
  job_.AddEvent();
  EXPECT_EQ(Call([&] { return EventsCommand({.query = Query()}); }), kExitSucceeded) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("#1 decision ps-0"), HasSubstr("#2 decision ps-0")));
  EXPECT_EQ(Events({}), kExitSucceeded);
  const std::vector<int> all = Ids();
  EXPECT_THAT(all, ::testing::IsSupersetOf({0, 1, 2}));
  EXPECT_EQ(Events({.last = static_cast<uint32_t>(all.size() - 1)}), kExitSucceeded);
  EXPECT_THAT(Ids(), ::testing::ElementsAreArray(all.begin() + 1, all.end()));
  EXPECT_EQ(Events({.after = "#1", .kinds = {"decision"}}), kExitSucceeded);
  EXPECT_THAT(Ids(), ElementsAre(2));
  EXPECT_EQ(Events({.kinds = {"decisions"}}), kExitSucceeded);
  EXPECT_THAT(Ids(), IsEmpty());
  EXPECT_THAT(err_, HasSubstr("no event is of that node, of these kinds"));
  EXPECT_EQ(Events({.node = "worker-7"}), kExitSucceeded);
  EXPECT_THAT(Ids(), IsEmpty());
  EXPECT_EQ(Events({.after = "yesterday"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--after"));
}

TEST_F(EventCommandsTest, AFollowerGetsWhatComesAndEndsWithTheRun) {
  StartMaster();
  StartScaler();
  std::thread job([this] {
    job_.AwaitAnotherEventCall();
    job_.AddEvent();
    // The call that was in progress may have been too early for it, the one after that is not.
    job_.AwaitAnotherEventCall();
    job_.AwaitAnotherEventCall();
    job_.AwaitAnotherEventCall();
    state_.RemoveEndpoint();
    master_.reset();
  });
  EXPECT_EQ(Events({.follow = true, .kinds = {"decision"}}), kExitSucceeded);
  job.join();
  EXPECT_THAT(Ids(), ElementsAre(1));
}

TEST_F(EventCommandsTest, AScalerThatDoesNotAnswerIsSaidAndTheMasterIsHeard) {
  StartMaster();
  StartScaler();
  StopScaler();
  EXPECT_EQ(Events({}), kExitSucceeded);
  EXPECT_THAT(err_, HasSubstr("events of the scaler are missing here: nothing answers"));
  EXPECT_THAT(Ids(), Not(IsEmpty()));
}

TEST_F(EventCommandsTest, WhatTheScalerLeftIsReadFromItsFile) {
  StartMaster();
  LeaveEvents();
  EXPECT_EQ(Events({.node = "ps-0"}), kExitSucceeded);
  EXPECT_THAT(Ids(), ElementsAre(1, 2));
  EXPECT_EQ(Events({.after = "1"}), kExitSucceeded);
  EXPECT_THAT(Ids(), ElementsAre(2)) << "the master said nothing after event 1";
  EXPECT_EQ(Explain("#2"), kExitSucceeded);
  EXPECT_THAT(err_, HasSubstr("no scaler answers"));
  EXPECT_THAT(out_, AllOf(HasSubstr("because  more"), HasSubstr("killed")));
  EXPECT_EQ(Explain("3"), kExitUsage);
}

TEST_F(EventCommandsTest, ExplainedByTheScaler) {
  EXPECT_EQ(Explain("1"), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("no job runs"));
  StartScaler();
  EXPECT_EQ(Explain("1"), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("no event 1"));
  job_.AddEvent();
  EXPECT_EQ(Explain("1"), kExitSucceeded);
  EXPECT_THAT(out_, AllOf(HasSubstr("memory 256 MiB -> 384 MiB"), HasSubstr("over 30 s")));
  EXPECT_EQ(Explain("1", OutputFormat::kJson), kExitSucceeded);
  EXPECT_EQ(nlohmann::json::parse(out_), ToJson(job_.Explain(1).value()));
  EXPECT_EQ(Explain("last"), kExitUsage);
}

}  // namespace
}  // namespace muster::steer
