#include "cli/metrics/comparison.h"

#include <gmock/gmock.h>

#include <sstream>

namespace muster::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
using ::testing::SizeIs;

MetricTrend Trend(const std::string& metric, double latest, double best, uint32_t best_epoch) {
  return {.dataset = "test",
          .metric = metric,
          .epoch = 2,
          .latest = latest,
          .epoch_over = true,
          .best = best,
          .best_epoch = best_epoch};
}

ComparedJob Job(const std::string& given, double auc, double loss) {
  ComparedJob job{.given = given, .state_directory = "/" + given, .runs = {}, .settings = {}};
  job.status.name = "clicks";
  job.status.state = JobState::kSucceeded;
  job.status.progress.records_committed = 1'200'000;
  job.status.running_ms = 60'000;
  job.status.metric_trends = {Trend("auc", auc, auc + 0.01, 1), Trend("log_loss", loss, loss, 2)};
  job.status.nodes = {{.name = "worker-0", .role = "worker"},
                      {.name = "worker-1", .role = "worker"},
                      {.name = "ps-0", .role = "ps"}};
  job.runs = {
      {.run_id = "1", .began_wall_us = 1'000'000, .ended_wall_us = 21'000'000},
      {.run_id = "2", .began_wall_us = 60'000'000, .ended_wall_us = 101'000'000},
  };
  job.settings = {{"spec.seed", "7"}, {"spec.replicaSpecs.worker.env.RATE", given}};
  return job;
}

TEST(ComparisonTest, TwoJobsWithTheChange) {
  EXPECT_EQ(ComparisonText({Job("low", 0.75, 0.5), Job("high", 0.8125, 0.5)}),
            "A  low: clicks\n"
            "B  high: clicks\n"
            "\n"
            "                    A          B             B - A\n"
            "state               succeeded  succeeded\n"
            "test auc            0.75       0.8125 *      +0.0625\n"
            "  best (its epoch)  0.76 (2)   0.8225 (2) *  +0.0625\n"
            "test log_loss       0.5        0.5           0\n"
            "  best (its epoch)  0.5 (3)    0.5 (3)       0\n"
            "records committed   1,200,000  1,200,000     0\n"
            "records/s           20,000     20,000        0\n"
            "running time        1:00       1:00\n"
            "wall time           1:40       1:40\n"
            "workers             2          2\n"
            "servers             1          1\n"
            "runs                2          2\n"
            "\n"
            "settings that differ:\n"
            "spec.replicaSpecs.worker.env.RATE\n"
            "  A  low\n"
            "  B  high\n");
}

TEST(ComparisonTest, LowerIsBetterOfALoss) {
  const std::string text = ComparisonText({Job("a", 0.7, 0.4), Job("b", 0.7, 0.5)});
  EXPECT_THAT(text, HasSubstr("test log_loss       0.4 *"));
  EXPECT_THAT(text, Not(HasSubstr("0.7 *"))) << "no value is better than the other";
}

TEST(ComparisonTest, ManyJobsAreSeveralTablesOfEightyColumns) {
  std::vector<ComparedJob> jobs;
  for (int i = 0; i < 7; ++i) jobs.push_back(Job("state-" + std::to_string(i), 0.123456 * i, 0.5));
  jobs[4].status.metric_trends[0].metric =
      "a_metric_with_a_name_of_more_than_thirty_characters_auc";
  jobs[5].status.progress.records_committed = 123'456'789'012;
  const std::string text = ComparisonText(jobs);
  EXPECT_THAT(text, HasSubstr("G  state-6: clicks"));
  EXPECT_THAT(text, Not(HasSubstr("B - A")));
  EXPECT_THAT(text, HasSubstr("123,456,789,012"));
  EXPECT_THAT(text, Not(HasSubstr("columns"))) << "no column is left out";
  std::istringstream lines(text);
  int tables = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    if (line.starts_with("state ")) ++tables;
  }
  EXPECT_EQ(tables, 3);
}

TEST(ComparisonTest, WhatIsNotKnownIsADash) {
  ComparedJob bare{.given = "b", .state_directory = "/b", .runs = {}, .settings = {}};
  bare.status.name = "clicks";
  const std::string text = ComparisonText({Job("a", 0.75, 0.5), bare});
  EXPECT_THAT(text, HasSubstr("test auc            0.75       -\n"));
  EXPECT_THAT(text, HasSubstr("wall time           1:40       -\n"));
  EXPECT_THAT(text, Not(HasSubstr("settings that differ"))) << "nothing is known of B's";
  const nlohmann::json json = ComparisonToJson({bare, Job("a", 0.75, 0.5)});
  EXPECT_TRUE(json["jobs"][0]["records_per_second"].is_null());
  EXPECT_EQ(json["jobs"][1]["records_per_second"], 20'000);
  EXPECT_EQ(json["jobs"][1]["wall_seconds"], 100);
  EXPECT_EQ(json["jobs"][1]["metric_trends"][0]["best_epoch"], 1);
  EXPECT_EQ(json["jobs"][1]["workers"], 2);
  EXPECT_THAT(json["differences"], IsEmpty());
}

TEST(ComparisonTest, TheWallTimeIsUnknownOnceSummariesMayBeGone) {
  ComparedJob job = Job("a", 0.75, 0.5);
  EXPECT_THAT(WallSecondsOf(job), Optional(100));
  job.runs.resize(20, job.runs.back());
  EXPECT_FALSE(WallSecondsOf(job).has_value());
  EXPECT_THAT(ComparisonText({job, job}), HasSubstr("20 or more"));
  job.status.running_ms = 999;
  EXPECT_FALSE(RecordsPerSecondOf(job).has_value());
}

TEST(ComparisonTest, ASettingThatOneJobLacksDiffers) {
  ComparedJob first = Job("a", 0.75, 0.5);
  ComparedJob second = Job("a", 0.75, 0.5);
  EXPECT_THAT(DifferencesOf({first, second}), IsEmpty());
  second.settings.emplace_back("spec.replicaSpecs.worker.env.MORE", "1");
  const std::vector<Difference> differences = DifferencesOf({first, second});
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_THAT(differences[0].values, ElementsAre(std::nullopt, "1"));
}

TEST(ComparisonTest, SecretsDifferWithoutBeingShown) {
  const auto with = [](const std::string& secret) {
    ComparedJob job = Job("a", 0.75, 0.5);
    job.settings.emplace_back("spec.replicaSpecs.worker.env.HF_TOKEN", secret);
    job.settings.emplace_back("spec.replicaSpecs.worker.command", "./t --key " + secret);
    return job;
  };
  EXPECT_THAT(DifferencesOf({with("abc"), with("abc")}), IsEmpty());
  const std::vector<Difference> differences = DifferencesOf({with("abc"), with("xyz")});
  ASSERT_THAT(differences, SizeIs(2));
  EXPECT_THAT(differences[0].values, ElementsAre("(hidden)", "(hidden)"));
  EXPECT_THAT(differences[1].values, ElementsAre("./t --key abc", "./t --key xyz"))
      << "only names tell what is secret";
}

TEST(ComparisonTest, SettingsAreWhatPeopleChange) {
  JobSpec spec;
  spec.seed = 5;
  spec.datasets.push_back({.name = "train", .epochs = 3});
  spec.worker.command = {"./t", "--fast"};
  spec.worker.env = {{"RATE", "0.1"}};
  const auto settings = SettingsOf(spec);
  for (const auto& [field, value] : std::vector<std::pair<std::string, std::string>>{
           {"spec.seed", "5"},
           {"spec.datasets[train].epochs", "3"},
           {"spec.replicaSpecs.worker.command", "./t --fast"},
           {"spec.replicaSpecs.worker.env.RATE", "0.1"}}) {
    EXPECT_THAT(settings, ::testing::Contains(std::pair(field, value)));
  }
}

}  // namespace
}  // namespace muster::metrics
