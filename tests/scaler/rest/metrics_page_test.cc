#include "scaler/rest/metrics_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/scaler/rest/fake_job_api.h"

namespace muster::scaler::rest {
namespace {

using testing::FakeJobApi;

struct Family {
  std::string type;
  std::map<std::string, double> samples;  // by labels; of a histogram with what it ends in before
};

/// Reads the text format as strictly as it is described, and what promtool's linter asks for.
/// Anything wrong is in `errors`.
class Parser {
 public:
  explicit Parser(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) Line(line);
    if (text.empty() || text.back() != '\n') errors.push_back("no end of the last line");
  }
  double Value(const std::string& family, const std::string& labels) const {
    return families.at(family).samples.at(labels);
  }

  std::map<std::string, Family> families;
  std::vector<std::string> errors;

 private:
  void Line(const std::string& line) {
    static const std::regex help(R"(# HELP ([a-z][a-z0-9_]*) (\S.*\.|0: none\.))");
    static const std::regex type(R"(# TYPE ([a-z][a-z0-9_]*) (counter|gauge|histogram))");
    static const std::regex sample(R"re(([a-z][a-z0-9_]*)(\{(.*)\})? (\S+))re");
    static const std::regex labels(
        R"re(([a-z]+="([^"\\]|\\["\\n])*")(,[a-z]+="([^"\\]|\\["\\n])*")*)re");
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      if (families.contains(match[1])) errors.push_back("family twice: " + line);
      current_ = match[1];
      if (!current_.starts_with("muster_")) errors.push_back("no prefix: " + line);
      families[current_];
    } else if (std::regex_match(line, match, type)) {
      if (match[1] != current_) errors.push_back("TYPE without its HELP: " + line);
      families[current_].type = match[2];
      const bool total = current_.ends_with("_total");
      if ((match[2] == "counter") != total) errors.push_back("_total is for counters: " + line);
    } else if (std::regex_match(line, match, sample)) {
      const std::string name = match[1];
      const std::string end = name.substr(std::min(name.size(), current_.size()));
      const bool in_family = families[current_].type == "histogram"
                                 ? end == "_bucket" || end == "_sum" || end == "_count"
                                 : end.empty();
      if (!name.starts_with(current_) || !in_family) {
        errors.push_back("sample outside of its family: " + line);
      }
      if (match[2].matched && !std::regex_match(match[3].str(), labels)) {
        errors.push_back("labels: " + line);
      }
      size_t used = 0;
      const double value = std::stod(match[4], &used);
      if (used != match[4].str().size()) errors.push_back("number: " + line);
      if (!families[current_].samples.emplace(end + match[3].str(), value).second) {
        errors.push_back("sample twice: " + line);
      }
    } else {
      errors.push_back("line: " + line);
    }
  }

  std::string current_;
};

Picture InputOf(FakeJobApi* job) {
  return *job->Look().value();
}
std::string TextOf(const Picture& picture) {
  return MetricsText(picture, {.answers = {0, 0, 7, 0, 2, 1}, .connections = 3});
}

TEST(MetricsTest, TheTextIsAsPrometheusReadsIt) {
  FakeJobApi job;
  const Parser parser(TextOf(InputOf(&job)));
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  for (const auto& [name, family] : parser.families) {
    EXPECT_FALSE(family.samples.empty()) << name;
    EXPECT_FALSE(family.type.empty()) << name;
    EXPECT_LE(family.samples.size(), 100u) << name;
  }
  EXPECT_EQ(parser.Value("muster_job_info", R"(job="flights",id="1f6c")"), 1);
  EXPECT_EQ(parser.Value("muster_job_state", R"(state="running")"), 1);
  EXPECT_EQ(parser.Value("muster_job_state", R"(state="failed")"), 0);
  EXPECT_EQ(parser.Value("muster_job_redelivered_minibatches_total", ""), 3);
  EXPECT_EQ(parser.Value("muster_dataset_committed_records", R"(dataset="train")"), 4000);
  EXPECT_EQ(parser.Value("muster_dataset_shards", R"(dataset="train",state="failed")"), 4);
  EXPECT_EQ(parser.Value("muster_node_cpu_seconds_total", R"(node="ps-0",role="ps")"), 12.5);
  EXPECT_EQ(parser.Value("muster_node_throttled_seconds_total", R"(node="ps-0",role="ps")"), 0.25);
  EXPECT_EQ(
      parser.Value("muster_worker_wait_pull_seconds_total", R"(node="worker-1",role="worker")"), 1);
  EXPECT_EQ(parser.Value("muster_server_rows", R"(node="ps-1",role="ps")"), 1234);
  EXPECT_EQ(parser.Value("muster_server_service_seconds_total", R"(node="ps-1",role="ps")"), 3.5);
  EXPECT_EQ(parser.families.at("muster_server_rows").type, "gauge");
  EXPECT_EQ(parser.families.at("muster_server_pulls_total").samples.size(), 2u) << "of servers";
  EXPECT_EQ(parser.families.count("muster_node_cpu_pressure_percent"), 0u) << "not known is not 0";
  EXPECT_EQ(parser.Value("muster_rest_answers_total", R"(status="2xx")"), 7);
}

TEST(MetricsTest, AGroupHasItsFigures) {
  FakeJobApi job;
  Picture input = InputOf(&job);
  for (const auto& [name, family] : Parser(TextOf(input)).families) {
    EXPECT_FALSE(name.starts_with("muster_group_")) << name << ": the job has no group";
  }
  input.job.group = GroupStatus{.attempt = 7,
                                .step = 1204,
                                .step_in_work = std::nullopt,
                                .checkpoint_step = 1100,
                                .members = 3,
                                .waits = "",
                                .processes = {}};
  const std::string text = TextOf(input);
  const Parser parser(text);
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  EXPECT_EQ(parser.Value("muster_group_step", ""), 1204);
  EXPECT_EQ(parser.Value("muster_group_attempt", ""), 7);
  EXPECT_EQ(parser.Value("muster_group_members", ""), 3);
  EXPECT_EQ(parser.Value("muster_group_checkpoint_step", ""), 1100);
  EXPECT_EQ(parser.families.at("muster_group_step").type, "gauge") << "steps may be undone";
  EXPECT_EQ(parser.families.count("muster_group_step_in_work"), 0u) << "unknown is not 0";
  EXPECT_THAT(text, ::testing::HasSubstr("# HELP muster_group_members Members: "));
}

TEST(MetricsTest, TopicsHaveTheirLagByPartition) {
  FakeJobApi job;
  Picture input = InputOf(&job);
  input.datasets.datasets[0].stream =
      StreamStatus{.topic = "clicks",
                   .partitions = {{.partition = 0, .committed = 5, .lag = 7},
                                  {.partition = 1, .lag_ms = 2500, .held_back = 75},
                                  {.partition = 2}}};
  const Parser parser(TextOf(input));
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  const std::string first = R"(dataset="train",topic="clicks",partition="0")";
  EXPECT_EQ(parser.Value("muster_stream_lag_offsets", first), 7);
  EXPECT_EQ(parser.Value("muster_stream_committed_offset", first), 5);
  EXPECT_EQ(
      parser.Value("muster_stream_lag_seconds", R"(dataset="train",topic="clicks",partition="1")"),
      2.5);
  EXPECT_EQ(parser.Value("muster_stream_held_back_offsets",
                         R"(dataset="train",topic="clicks",partition="1")"),
            75);
  for (const char* family : {"muster_stream_lag_offsets", "muster_stream_lag_seconds",
                             "muster_stream_held_back_offsets"}) {
    EXPECT_EQ(parser.families.at(family).samples.size(), 1u) << "unknown is not 0: " << family;
  }
  EXPECT_EQ(parser.families.at("muster_stream_committed_offset").samples.size(), 3u);
  EXPECT_EQ(parser.families.count("muster_stream_delay_seconds"), 0u) << "nothing is known of it";
}

TEST(MetricsTest, DelaysOfATopicAreAHistogram) {
  FakeJobApi job;
  Picture input = InputOf(&job);
  input.datasets.datasets[0].stream =
      StreamStatus{.topic = "clicks",
                   .delay = DelayStatus{.total_records = 9, .total_ms = 1500, .buckets = {0, 3, 8}},
                   .partitions = {}};
  const Parser parser(TextOf(input));
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  const char* family = "muster_stream_delay_seconds";
  const std::string topic = R"(dataset="train",topic="clicks")";
  EXPECT_EQ(parser.Value(family, "_bucket" + topic + R"(,le="0.004")"), 0);
  EXPECT_EQ(parser.Value(family, "_bucket" + topic + R"(,le="0.008")"), 3);
  EXPECT_EQ(parser.Value(family, "_bucket" + topic + R"(,le="0.016")"), 8);
  EXPECT_EQ(parser.Value(family, "_bucket" + topic + R"(,le="+Inf")"), 9);
  EXPECT_EQ(parser.Value(family, "_sum" + topic), 1.5);
  EXPECT_EQ(parser.Value(family, "_count" + topic), 9);
}

TEST(MetricsTest, OfVeryManyTopicPartitionsThoseWithTheLargestLag) {
  FakeJobApi job;
  Picture input = InputOf(&job);
  StreamStatus& stream =
      input.datasets.datasets[0].stream.emplace(StreamStatus{.topic = "clicks", .partitions = {}});
  for (uint32_t i = 0; i < 3'000; ++i) stream.partitions.push_back({.partition = i, .lag = i});
  const Parser parser(TextOf(input));
  EXPECT_EQ(parser.families.at("muster_stream_lag_offsets").samples.size(), 256u);
  EXPECT_EQ(parser.Value("muster_stream_lag_offsets",
                         R"(dataset="train",topic="clicks",partition="2999")"),
            2'999);
  const std::string topic = R"(dataset="train",topic="clicks")";
  EXPECT_EQ(parser.Value("muster_stream_partitions", topic), 3'000);
  EXPECT_EQ(parser.Value("muster_stream_partitions_omitted", topic), 2'744);
}

TEST(MetricsTest, OnlyANodeThatWasHeardOfHasAnAge) {
  Picture input;
  for (const char* name : {"worker-0", "worker-1", "master"}) {
    input.nodes.nodes.emplace_back().name = name;
  }
  input.nodes.nodes[0].heartbeat_age_ms = 1'500;
  input.nodes.nodes[1].heartbeat_age_ms = 0;
  const Parser parser(TextOf(input));
  const char* family = "muster_node_heartbeat_age_seconds";
  EXPECT_EQ(parser.families.at(family).samples.size(), 2u);
  EXPECT_EQ(parser.Value(family, R"(node="worker-0",role="worker")"), 1.5);
  EXPECT_EQ(parser.Value(family, R"(node="worker-1",role="worker")"), 0);
}

TEST(MetricsTest, ANodeWithoutAPlaceSaysWhy) {
  Picture picture;
  picture.nodes.nodes.resize(2);
  picture.nodes.nodes[0].name = "worker-0";
  EXPECT_FALSE(Parser(TextOf(picture)).families.contains("muster_node_waiting"));
  picture.nodes.nodes[1].name = "worker-1";
  picture.nodes.nodes[1].wait = NodeWait::kQuota;
  const Parser parser(TextOf(picture));
  EXPECT_TRUE(parser.errors.empty());
  EXPECT_EQ(parser.families.at("muster_node_waiting").samples.size(), 1u);
  EXPECT_EQ(parser.Value("muster_node_waiting", R"(node="worker-1",role="worker",why="quota")"), 1);
}

TEST(MetricsTest, LabelsAreEscapedAndUndefinedNumbersAreWritten) {
  Picture input;
  input.job.name = "a \"b\" \\ c\nd";
  input.job.progress.records_per_second = std::numeric_limits<double>::quiet_NaN();
  const std::string text = TextOf(input);
  EXPECT_THAT(Parser(text).errors, ::testing::IsEmpty());
  EXPECT_THAT(text, ::testing::HasSubstr(R"(job="a \"b\" \\ c\nd")"));
  EXPECT_THAT(text, ::testing::HasSubstr("muster_training_records_per_second NaN\n"));
}

TEST(MetricsTest, MetricsOfDatasetsByEpoch) {
  FakeJobApi job(FakeJobApi::Options{.epochs = 80});
  const Parser parser(TextOf(InputOf(&job)));
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  const char* family = "muster_dataset_metric";
  EXPECT_EQ(parser.Value(family, R"(dataset="test",metric="auc",epoch="latest")"), 0.711);
  EXPECT_EQ(parser.Value(family, R"(dataset="test",metric="auc",epoch="previous")"), 0.711);
  EXPECT_EQ(parser.Value(family, R"(dataset="test",metric="auc",epoch="best")"), 0.816);
  EXPECT_EQ(parser.families.at(family).samples.size(), 12u);
  const char* epoch = "muster_dataset_metric_epoch";
  EXPECT_EQ(parser.Value(epoch, R"(dataset="test",metric="auc",epoch="latest")"), 78);
  EXPECT_EQ(parser.Value(epoch, R"(dataset="test",metric="auc",epoch="best")"), 2);
  EXPECT_EQ(parser.Value(epoch, R"(dataset="train",metric="loss",epoch="latest")"), 79);
  const char* worse = "muster_dataset_metric_worse_epochs";
  EXPECT_EQ(parser.Value(worse, R"(dataset="test",metric="auc")"), 76);
  EXPECT_EQ(parser.Value(worse, R"(dataset="train",metric="auc")"), 0);
}

TEST(MetricsTest, AMetricWhoseBestNobodyKnowsHasNone) {
  Picture input;
  EXPECT_EQ(Parser(TextOf(input)).families.count("muster_dataset_metric"), 0u);
  input.job.metric_trends = {{.dataset = "train", .metric = "mean", .latest = 3}};
  const Parser parser(TextOf(input));
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  EXPECT_EQ(parser.families.at("muster_dataset_metric").samples.size(), 1u);
  EXPECT_EQ(parser.families.at("muster_dataset_metric_epoch").samples.size(), 1u);
}

TEST(MetricsTest, LabelsAreBounded) {
  Picture input;
  for (size_t i = 0; i < kMetricsNodesMax + 5; ++i) {
    input.nodes.nodes.emplace_back().name = fmt::format("worker-{}", i);
  }
  for (size_t i = 0; i < kMetricsDatasetsMax + 1; ++i) {
    input.datasets.datasets.push_back({.name = fmt::format("d{}", i)});
  }
  for (size_t i = 0; i < kMetricsTrendsMax + 2; ++i) {
    input.job.metric_trends.push_back({.dataset = "d", .metric = fmt::format("m{}", i)});
  }
  const Parser parser(TextOf(input));
  EXPECT_THAT(parser.errors, ::testing::IsEmpty());
  EXPECT_EQ(parser.families.at("muster_dataset_metric").samples.size(), kMetricsTrendsMax);
  EXPECT_EQ(parser.Value("muster_dataset_metrics_omitted", ""), 2);
  EXPECT_EQ(parser.families.at("muster_node_up").samples.size(), kMetricsNodesMax);
  EXPECT_EQ(parser.Value("muster_nodes_omitted", ""), 5);
  EXPECT_EQ(parser.families.at("muster_dataset_done_records").samples.size(), kMetricsDatasetsMax);
}

}  // namespace
}  // namespace muster::scaler::rest
