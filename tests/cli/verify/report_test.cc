#include "cli/verify/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::verify {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Report GoodReport() {
  Report report{.seed = 17, .workload = {.records = 1'000, .epochs = 3}};
  report.storm.kills = {4, 5, 3, 2};
  report.storm.pauses = {1, 0, 2, 1};
  report.storm.elapsed = std::chrono::milliseconds(21'500);
  Judgement judgement;
  judgement.verdict.attempts = 3'200;
  judgement.verdict.acknowledged = 3'000;
  judgement.verdict.redelivered = 200;
  judgement.verdict.redelivered_minibatches = 7;
  judgement.verdict.rows = 1'319;
  judgement.ledger_redelivered_minibatches = 8;
  judgement.redelivered_tolerance = 24;
  judgement.worker = {.count = 2, .median_ms = 500, .worst_ms = 700};
  judgement.server = {.count = 5, .median_ms = 1'500, .worst_ms = 1'900};
  judgement.scaler = {.count = 2, .median_ms = 90, .worst_ms = 120};
  judgement.paths = {1, 2, 3, 4};
  report.judgement = judgement;
  return report;
}

TEST(ReportTest, JsonOfAGoodRun) {
  const nlohmann::json json = ReportToJson(GoodReport());
  EXPECT_EQ(json["verdict"], "ok");
  EXPECT_EQ(json["lost"], 0);
  EXPECT_EQ(json["unexpected"], 0);
  EXPECT_EQ(json["duplicated"], 0);
  EXPECT_EQ(json["redelivered"], 200);
  EXPECT_EQ(json["kills"], 14);
  EXPECT_EQ(json["kills_by_role"],
            (nlohmann::json{{"worker", 4}, {"ps", 5}, {"master", 3}, {"scaler", 2}}));
  EXPECT_EQ(json["pauses"], 4);
  EXPECT_EQ(json["redelivered_minibatches"],
            (nlohmann::json{{"workers", 7}, {"ledger", 8}, {"tolerance", 24}}));
  EXPECT_EQ(json["recovery_ms"]["worker"]["median"], 500);
  EXPECT_EQ(json["recovery_ms"]["ps"]["worst"], 1'900);
  EXPECT_EQ(json["recovery_ms"]["scaler"]["worst"], 120);
  EXPECT_TRUE(json["recovery_ms"]["master"]["median"].is_null());
  EXPECT_EQ(json["rare_paths"]["parts_skipped"], 3);
  EXPECT_TRUE(json["paths_not_taken"].empty());
  EXPECT_EQ(json.dump().find('\n'), std::string::npos) << "one line";
}

TEST(ReportTest, TextOfAGoodRun) {
  const std::string text = ReportText(GoodReport());
  EXPECT_THAT(text, StartsWith("Nothing is lost, unexpected or duplicated: 3,000 record trainings "
                               "under 14 kills and 4 pauses, seed 17, 0:21\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("worker 4, ps 5, master 3, scaler 2"), HasSubstr("master -"),
                          HasSubstr("scaler 90 / 120 ms (2)"),
                          HasSubstr("7 minibatches; the ledger counts 8, and may be 24 off"),
                          Not(HasSubstr("proves less")), Not(HasSubstr("kept"))));
}

TEST(ReportTest, PathThatWasNotTaken) {
  Report report = GoodReport();
  report.judgement->paths.replayed_shards = 0;
  EXPECT_EQ(ReportToJson(report)["verdict"], "ok");
  EXPECT_EQ(ReportToJson(report)["paths_not_taken"], nlohmann::json({"replayed_shards"}));
  EXPECT_THAT(ReportText(report), HasSubstr("proves less than it could: not taken: "
                                            "replayed_shards."));
}

TEST(ReportTest, WrongRun) {
  Report report = GoodReport();
  Verdict& verdict = report.judgement->verdict;
  verdict.duplicated = 2;
  verdict.wrong_rows = 1;
  verdict.samples.push_back({.table = "ids", .key = 9, .expected = "73", .found = "75"});
  verdict.disagreements.push_back("the ledger has 2 epochs");
  report.directory = "/somewhere/job";
  EXPECT_THAT(
      ReportText(report),
      AllOf(StartsWith("WRONG"), HasSubstr("ids, key 9: 75; should be 73"),
            HasSubstr("disagreement: the ledger has 2 epochs"), HasSubstr("/somewhere/job")));
  const nlohmann::json json = ReportToJson(report);
  EXPECT_EQ(json["verdict"], "wrong");
  EXPECT_EQ(json["duplicated"], 2);
  EXPECT_EQ(json["samples"][0]["key"], 9);
  EXPECT_EQ(json["disagreements"][0], "the ledger has 2 epochs");
  EXPECT_EQ(json["directory"], "/somewhere/job");
}

Report GoodGroupReport() {
  Report report = GoodReport();
  report.storm.kills = {8, 0, 4, 0};
  Judgement& judgement = *report.judgement;
  judgement.paths = {};
  judgement.group = {
      .verdict = {.steps = 47, .compared = 140, .members = 3},
      .workers = 3,
      .changes = {.attempts = 21, .rollbacks = 2},
  };
  return report;
}

TEST(ReportTest, TextOfAGroup) {
  const std::string text = ReportText(GoodGroupReport());
  EXPECT_THAT(text, StartsWith("Every record is in one step, and the weights are those of the "
                               "undisturbed run: 3,000 record trainings under 12 kills and 4 "
                               "pauses, seed 17, 0:21\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("made in 21 attempts; the group went back to an older step 2 times"),
                    HasSubstr("of 140 states after a step"),
                    HasSubstr("3   of 3 had the weights of the last step"),
                    HasSubstr("attempts beyond the first (7 minibatches)\n"),
                    Not(HasSubstr("rare paths")), Not(HasSubstr("proves less"))));
}

TEST(ReportTest, JsonOfAGroup) {
  const nlohmann::json json = ReportToJson(GoodGroupReport());
  EXPECT_EQ(json["verdict"], "ok");
  EXPECT_EQ(json["group"], (nlohmann::json{{"steps", 47},
                                           {"attempts", 21},
                                           {"rollbacks", 2},
                                           {"in_no_step", 0},
                                           {"in_two_steps", 0},
                                           {"states_compared", 140},
                                           {"states_different", 0},
                                           {"workers", 3},
                                           {"members", 3},
                                           {"members_different", 0},
                                           {"wrong", nlohmann::json::array()}}));
  EXPECT_FALSE(json.contains("rare_paths"));
}

TEST(ReportTest, WrongGroup) {
  Report report = GoodGroupReport();
  GroupVerdict& verdict = report.judgement->group->verdict;
  verdict.in_two_steps = 1;
  verdict.wrong = {"record 17 of epoch 1 is in 2 steps"};
  EXPECT_THAT(ReportText(report),
              AllOf(StartsWith("WRONG"), HasSubstr("in two steps            1   record trainings"),
                    HasSubstr("wrong: record 17 of epoch 1 is in 2 steps")));
  const nlohmann::json json = ReportToJson(report);
  EXPECT_EQ(json["verdict"], "wrong");
  EXPECT_EQ(json["group"]["in_two_steps"], 1);
}

TEST(ReportTest, RunThatDidNotEnd) {
  Report report = GoodReport();
  report.judgement.reset();
  report.problem = "the job did not begin";
  EXPECT_THAT(ReportText(report), StartsWith("NOT PROVEN: the job did not begin\n"));
  const nlohmann::json json = ReportToJson(report);
  EXPECT_EQ(json["verdict"], "not proven");
  EXPECT_EQ(json["problem"], "the job did not begin");
  EXPECT_EQ(json["kills"], 14);
  EXPECT_FALSE(json.contains("lost"));
}

}  // namespace
}  // namespace muster::verify
