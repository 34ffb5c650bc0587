// Datasets of mode predict, by way of whole job files.
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

absl::StatusOr<JobSpec> ParsePredict(const std::string& dataset, const std::string& more = "") {
  return ParseJobFile(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: scores}
spec:
  datasets:
    - )" + dataset + "\n" +
                          more +
                          R"(  replicaSpecs: {worker: {command: [./trainer]}}
)",
                      "job.yaml", "/jobs/scores");
}

TEST(OutputFieldsTest, APredictDatasetHasAPlaceForItsOutputs) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParsePredict("{name: new, files: [a], mode: predict, output: out/new}",
                   "    - {name: other, records: 9, mode: predict, output: 's3://bucket/other'}\n"
                   "  training: {warmStart: weights}\n"));
  EXPECT_EQ(job.datasets[0].mode, DatasetMode::kPredict);
  EXPECT_EQ(job.datasets[0].output, "/jobs/scores/out/new");
  EXPECT_THAT(job.datasets[1].output, HasSubstr("s3://bucket/other"));
  EXPECT_EQ(job.training.warm_start, "/jobs/scores/weights");
}

TEST(OutputFieldsTest, WhatAPredictDatasetCannotBe) {
  const std::string predicts = "mode: predict, output: o";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{name: x, files: [a], mode: predict}", "spec.datasets[0].output: is missing; name the"},
      {"{name: x, files: [a], output: o}", "output: only a dataset of mode predict has outputs"},
      {"{name: x, files: [a], mode: evaluate, output: o}", "only a dataset of mode predict"},
      {"{name: x, files: [a], epochs: 2, " + predicts + "}", "a predict dataset is read once"},
      {"{name: x, files: [a], shuffle: true, " + predicts + "}",
       "shuffle: outputs are in the order of the records; remove this field"},
      {"{name: x, files: [a], weight: 2, " + predicts + "}", "only train datasets are mixed"},
      {"{name: x, files: [a], mode: predict, output: 's3://'}", "output: "},
      {"{name: x, kafka: {brokers: ['b:1'], topic: t}, " + predicts + "}", "mode: a topic cannot"},
      {"{name: x, files: [a], " + predicts + "}\n    - {name: y, files: [b], " + predicts + "}",
       "spec.datasets[1].output: is also that of dataset 'x'; give each its own"},
  };
  for (const auto& [dataset, what] : cases) {
    EXPECT_THAT(ParsePredict(dataset),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << dataset;
  }
}

TEST(OutputFieldsTest, MembersOfAGroupCannotPredict) {
  EXPECT_THAT(ParsePredict("{name: t, files: [a]}",
                           "    - {name: x, files: [b], mode: predict, output: o}\n"
                           "  group: {globalBatch: 256}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("members of a synchronous group cannot predict")));
}

TEST(OutputFieldsTest, AMissingPlaceIsTheOnlyError) {
  EXPECT_THAT(ParsePredict("{name: x, files: [a], mode: predict}"),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("2 errors"))));
}

}  // namespace
}  // namespace muster
