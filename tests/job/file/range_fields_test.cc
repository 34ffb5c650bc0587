// spec.datasets[].records, by way of whole job files.
#include <string>
#include <utility>
#include <vector>

#include "job/file/job_file.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<JobSpec> ParseRange(const std::string& dataset) {
  return ParseJobFile(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: numbers}
spec:
  datasets:
    - )" + dataset + R"(
  replicaSpecs: {worker: {command: [./trainer]}}
)",
                      "job.yaml", "/jobs/numbers");
}

TEST(RangeFieldsTest, ARangeHasAllThatFilesHave) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParseRange("{name: train, records: 1000000000000, epochs: 3, shuffle: true, weight: 2}\n"
                 "    - {name: test, records: 1, mode: evaluate, minibatchSize: 8}"));
  ASSERT_EQ(job.datasets.size(), 2u);
  EXPECT_EQ(std::get<RangeSpec>(job.datasets[0].source).records, RangeSpec::kRecordsMax);
  EXPECT_EQ(job.datasets[0].shuffle, Shuffle::kAll);
  EXPECT_EQ(std::get<RangeSpec>(job.datasets[1].source).records, 1u);
  EXPECT_EQ(job.datasets[1].mode, DatasetMode::kEvaluate);
}

TEST(RangeFieldsTest, WhatARangeCannotBe) {
  const std::string kafka = "kafka: {brokers: ['b:1'], topic: t}";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{name: x, records: 0}", "job.yaml:6:26: spec.datasets[0].records: 0 is out of bounds"},
      {"{name: x, records: 1000000000001}", "records: 1000000000001 is out of bounds"},
      {"{name: x, records: -1}", "records: "},
      {"{name: x, records: many}", "records: 'many' is not a whole number"},
      {"{name: x, records: 9, files: [a]}", "files: a dataset has files or records, not both"},
      {"{name: x, records: 9, " + kafka + "}", "kafka: a dataset has kafka or records, not both"},
      {"{name: x, records: 9, header: true}",
       "header: is allowed for files only, not for record numbers; remove it"},
      {"{name: x}", "files: is missing; give it, or kafka.topic or records"},
  };
  for (const auto& [dataset, what] : cases) {
    EXPECT_THAT(ParseRange(dataset), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << dataset;
  }
}

TEST(RangeFieldsTest, AWrongNumberIsTheOnlyError) {
  EXPECT_THAT(ParseRange("{name: x, records: 0}"),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("is missing"))));
}

}  // namespace
}  // namespace muster
