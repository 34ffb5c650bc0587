// The metrics in packaging/prometheus and packaging/grafana exist under these names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "scaler/rest/metrics_page.h"
#include "tests/scaler/rest/fake_job_api.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string Packaged(const std::string& name) {
  absl::StatusOr<std::string> text = ReadFile(MUSTER_PACKAGING "/" + name, 1 << 20);
  EXPECT_THAT(text.status(), testing::IsOk());
  return text.value_or("");
}

/// The metrics of a job that has everything: topics, nodes that were heard of.
std::string Metrics() {
  scaler::rest::testing::FakeJobApi job;
  scaler::rest::Picture picture = *job.Look().value();
  picture.datasets.datasets[0].stream = StreamStatus{
      .topic = "clicks", .partitions = {{.partition = 0, .lag = 7, .lag_ms = 9, .held_back = 1}}};
  for (auto& node : picture.nodes.nodes) node.heartbeat_age_ms = 5;
  return scaler::rest::MetricsText(picture, {});
}

/// The expressions of all rules.
std::vector<std::string> Rules() {
  std::vector<std::string> expressions;
  const YAML::Node rules = YAML::Load(Packaged("prometheus/rules.yml"));
  for (const auto& group : rules["groups"]) {
    for (const auto& rule : group["rules"]) expressions.push_back(rule["expr"].as<std::string>());
  }
  return expressions;
}

/// The expressions of all panels.
std::vector<std::string> Board() {
  std::vector<std::string> expressions;
  const auto board = nlohmann::json::parse(Packaged("grafana/job.json"));
  for (const auto& panel : board.at("panels")) {
    for (const auto& target : panel.at("targets")) expressions.push_back(target.at("expr"));
  }
  return expressions;
}

/// The wrong names in an expression: metrics that the job lacks, and labels that the metric lacks.
std::string Unknown(const std::string& expression, const std::string& metrics) {
  static const std::regex selector(R"re((muster_[a-z_]+)(\{([^}]*)\})?)re");
  static const std::regex matcher(R"re(([a-z_]+)="([^"]*)")re");
  for (std::sregex_iterator it(expression.begin(), expression.end(), selector), end; it != end;
       ++it) {
    const std::string name = (*it)[1];
    if (metrics.find("# TYPE " + name + " ") == std::string::npos) return "no metric " + name;
    const std::string labels = (*it)[3];
    for (std::sregex_iterator label(labels.begin(), labels.end(), matcher); label != end; ++label) {
      if ((*label)[1] == "instance") continue;  // Prometheus adds it
      const std::regex sample("\n" + name + R"(\{[^\n]*)" + label->str());
      if (!std::regex_search(metrics, sample)) return name + " has no " + label->str();
    }
  }
  return "";
}

TEST(MonitoringTest, RulesAndBoardAskForMetricsThatExist) {
  const std::string metrics = Metrics();
  std::vector<std::string> all = Rules();
  std::ranges::copy(Board(), std::back_inserter(all));
  ASSERT_GT(all.size(), 20u);
  for (const std::string& expression : all) {
    EXPECT_THAT(Unknown(expression, metrics), IsEmpty()) << expression;
    EXPECT_EQ(std::ranges::count(expression, '('), std::ranges::count(expression, ')'));
    EXPECT_EQ(std::ranges::count(expression, '{'), std::ranges::count(expression, '}'));
  }
}

TEST(MonitoringTest, WhatDoesNotExistIsFound) {
  const std::string metrics = Metrics();
  EXPECT_EQ(Unknown("rate(muster_node_ups[1m])", metrics), "no metric muster_node_ups");
  EXPECT_EQ(Unknown(R"(muster_job_state{state="lost"} == 1)", metrics),
            R"(muster_job_state has no state="lost")");
}

TEST(MonitoringTest, EveryRuleSaysWhatToDo) {
  const YAML::Node rules = YAML::Load(Packaged("prometheus/rules.yml"));
  std::set<std::string> names;
  for (const auto& rule : rules["groups"][0]["rules"]) {
    const auto name = rule["alert"].as<std::string>();
    EXPECT_THAT(name, StartsWith("Muster"));
    EXPECT_TRUE(names.insert(name).second) << name << " stands there twice";
    EXPECT_THAT(rule["labels"]["severity"].as<std::string>(), AnyOf("critical", "warning", "info"));
    EXPECT_THAT(rule["annotations"]["summary"].as<std::string>(), Not(IsEmpty()));
    EXPECT_THAT(rule["annotations"]["description"].as<std::string>(), Not(IsEmpty()));
  }
  EXPECT_THAT(YAML::Load(Packaged("prometheus/scrape.yml"))["rule_files"][0].as<std::string>(),
              HasSubstr("rules.yml"));
}

}  // namespace
}  // namespace muster
