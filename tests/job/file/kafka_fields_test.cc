// spec.datasets[].kafka, by way of whole job files.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "job/file/job_file.h"
#include "job/file/name_rules.h"
#include "job/file/stream_bound.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using BoundKind = StreamBound::Kind;

absl::StatusOr<JobSpec> ParseDataset(const std::string& dataset) {
  return ParseJobFile(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: clicks}
spec:
  datasets:
    - )" + dataset + R"(
  replicaSpecs: {worker: {command: [./trainer]}}
)",
                      "job.yaml", "/jobs/clicks");
}
absl::StatusOr<JobSpec> ParseKafka(const std::string& more) {
  return ParseDataset("{name: train, kafka: {brokers: ['b:9092'], topic: clicks, " + more + "}}");
}

TEST(KafkaFieldsTest, EveryFieldIsRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParseDataset(
          "{name: train, minibatchSize: 8, kafka: {brokers: [a:1, b:2], topic: my.Clicks_1, "
          "start: latest, end: {0: 10, 3: 40}, maxDelay: 250ms, openRangesMax: 7, "
          "recordBytesMax: 2Mi, deadLetterTopic: dead, properties: {client.id: muster}, "
          "secrets: {sasl.password: 'file:secret', ssl.key.password: 'env:KEY'}}}"));
  ASSERT_EQ(job.datasets.size(), 1u);
  const TopicSpec& kafka = std::get<TopicSpec>(job.datasets[0].source);
  EXPECT_THAT(kafka.brokers, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(kafka.topic, "my.Clicks_1");
  EXPECT_EQ(kafka.start.kind, BoundKind::kLatest);
  EXPECT_EQ(kafka.end.kind, BoundKind::kOffsets);
  EXPECT_THAT(kafka.end.offsets, ElementsAre(Pair(0, 10), Pair(3, 40)));
  EXPECT_EQ(kafka.max_delay, milliseconds(250));
  EXPECT_EQ(kafka.open_ranges_max, 7u);
  EXPECT_EQ(kafka.record_bytes_max, uint64_t{2} << 20);
  EXPECT_EQ(kafka.dead_letter_topic, "dead");
  EXPECT_THAT(kafka.properties, ElementsAre(Pair("client.id", "muster")));
  EXPECT_THAT(kafka.secrets, ElementsAre(Pair("sasl.password", "file:/jobs/clicks/secret"),
                                         Pair("ssl.key.password", "env:KEY")));
}

TEST(KafkaFieldsTest, TimesAreReadAndShownInUtc) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job,
                              ParseKafka("start: 2026-01-31T12:00:00+01:00, end: now"));
  const TopicSpec& topic = std::get<TopicSpec>(job.datasets[0].source);
  const StreamBound& start = topic.start;
  EXPECT_EQ(start.kind, BoundKind::kTime);
  EXPECT_EQ(start.time, milliseconds(1'769'857'200'000));
  EXPECT_EQ(ToString(start), "2026-01-31T11:00:00.000Z");
  EXPECT_EQ(ToString(topic.end), "now");
}

TEST(KafkaFieldsTest, MistakesAreNamedWithTheirPlace) {
  struct Case {
    std::string more;
    std::vector<std::string> what;
  };
  const std::vector<Case> cases = {
      {"start: never", {"kafka.start: expected earliest, latest", "'never'"}},
      {"end: earliest", {"kafka.end: expected never, now"}},
      {"end: 2026-13-01T00:00:00Z", {"kafka.end: expected never, now"}},
      {"start: {0: x}", {"'x' is not an offset"}},
      {"start: {a: 1}", {"'a' is not the number of a partition"}},
      {"start: {}", {"0 entries are out of bounds"}},
      {"maxDelay: 1ms", {"1ms is out of bounds"}},
      {"deadLetterTopic: 'a b'", {"\"a b\" is not the name of a topic"}},
      {"properties: {group.id: x}", {"group.id is set by Muster"}},
      {"properties: {isolation.level: read_uncommitted}", {"isolation.level is set by Muster"}},
      {"properties: {sasl.password: x}", {"sasl.password is a secret", "kafka.secrets"}},
      {"properties: {'A b': x}", {"\"A b\" is not the name of a setting"}},
      {"start: {0: 5, 1: 31}, end: {0: 5, 1: 30}",
       {"kafka.end: partition 1 ends at offset 30, but begins at offset 31"}},
      {"start: 2026-01-31T12:00:01Z, end: 2026-01-31T12:00:00Z", {"kafka.end: is before"}},
      {"properties: {a.b: 1}, secrets: {a.b: 'env:X'}", {"a.b is also in kafka.properties"}},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseKafka(c.more);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << c.more;
    for (const std::string& what : c.what) {
      EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr(what)) << c.more;
    }
  }
}

TEST(KafkaFieldsTest, ASecretThatWasGivenItselfIsNotRepeated) {
  EXPECT_THAT(
      ParseKafka("secrets: {sasl.password: hunter2}"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("sasl.password must say where"), Not(HasSubstr("hunter2")))));
}

TEST(KafkaFieldsTest, WhatATopicCannotBe) {
  const std::string kafka = "kafka: {brokers: ['b:1'], topic: t}";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{name: x, mode: evaluate, " + kafka + "}", "a topic cannot be evaluated"},
      {"{name: x, epochs: 2, " + kafka + "}", "a topic is read once"},
      {"{name: x, shuffle: true, " + kafka + "}", "read in order and cannot be shuffled"},
      {"{name: x, header: true, " + kafka + "}", "header: is allowed for files only"},
      {"{name: x, files: [a], " + kafka + "}", "files or kafka, not both"},
      {"{name: x, kafka: {topic: t}}", "kafka.brokers: is missing"},
      {"{name: x, kafka: {brokers: ['b:1']}}", "kafka.topic: is missing"},
      {"{name: x}", "job.yaml:6:7: spec.datasets[0].files: is missing; give it, or kafka.topic"},
  };
  for (const auto& [dataset, what] : cases) {
    EXPECT_THAT(ParseDataset(dataset),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << dataset;
  }
}

}  // namespace
}  // namespace muster
