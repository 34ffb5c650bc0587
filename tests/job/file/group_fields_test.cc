#include <string>
#include <utility>

#include "base/words/limits.h"
#include "job/file/job_file.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A job with these fields in `spec`, and in its train dataset.
absl::StatusOr<JobSpec> ParseGroup(const std::string& spec, const std::string& dataset = "") {
  return ParseJobFile(
      "apiVersion: muster/v1\nkind: TrainingJob\nmetadata: {name: text}\nspec:\n"
      "  datasets:\n"
      "    - {name: train, files: [a], minibatchSize: 64" +
          dataset +
          "}\n"
          "    - {name: test, files: [b], mode: evaluate, minibatchesPerShard: 3}\n"
          "  replicaSpecs: {worker: {replicas: 4, command: [./trainer]}}\n" +
          spec,
      "job.yaml", "/jobs");
}

std::string Wrong(const std::string& spec, const std::string& dataset = "") {
  return std::string(ParseGroup(spec, dataset).status().message());
}

TEST(GroupFieldsTest, AJobWithoutGlobalBatchHasNoGroup) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseGroup("  group: {minMembers: 2}\n"));
  EXPECT_FALSE(HasGroup(job));
  EXPECT_EQ(job.datasets[0].minibatches_per_shard, 16u);
}

TEST(GroupFieldsTest, AStepIsAShardOfTheTrainDatasets) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParseGroup(
          "  group: {globalBatch: 640, minMembers: 2, maxMembers: 3, silenceLimit: 2s, joinWait: "
          "0s, balance: false}\n"));
  EXPECT_TRUE(HasGroup(job));
  EXPECT_EQ(job.datasets[0].minibatches_per_shard, 10u);
  EXPECT_EQ(job.datasets[1].minibatches_per_shard, 3u) << "an evaluation has no global batch";
  EXPECT_EQ(job.group.members_min, 2u);
  EXPECT_EQ(GroupMembersMax(job), 3u);
  EXPECT_EQ(job.group.silence_limit, std::chrono::seconds(2));
  EXPECT_EQ(job.group.join_wait, std::chrono::seconds(0));
  EXPECT_FALSE(job.group.balance);
}

TEST(GroupFieldsTest, WithoutAMaximumAllWorkersMayBeMembers) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseGroup("  group: {globalBatch: 64}\n"));
  EXPECT_EQ(GroupMembersMax(job), 4u);
}

TEST(GroupFieldsTest, AStepThatMinibatchesDoNotFillIsRefused) {
  EXPECT_THAT(Wrong("  group: {globalBatch: 100}\n"),
              AllOf(HasSubstr("spec.group.globalBatch"), HasSubstr("dataset 'train'"),
                    HasSubstr("use 64 or 128")));
  EXPECT_THAT(Wrong("  group: {globalBatch: 10}\n"), HasSubstr("use 64 or 128"));
}

TEST(GroupFieldsTest, AStepOfTooManyMinibatchesIsRefused) {
  EXPECT_THAT(
      ParseGroup("  group: {globalBatch: " + std::to_string(64 * kMinibatchesPerShardMax) + "}\n"),
      IsOk());
  EXPECT_THAT(
      Wrong("  group: {globalBatch: " + std::to_string(64 * (kMinibatchesPerShardMax + 1)) + "}\n"),
      HasSubstr("at most 1024"));
}

TEST(GroupFieldsTest, TheSizeOfAShardIsNotChosenTwice) {
  EXPECT_THAT(ParseGroup("  group: {globalBatch: 128}\n", ", minibatchesPerShard: 2"), IsOk());
  EXPECT_THAT(Wrong("  group: {globalBatch: 128}\n", ", minibatchesPerShard: 16"),
              AllOf(HasSubstr("a step has 2 minibatches"), HasSubstr("remove this field")));
}

TEST(GroupFieldsTest, AGroupThatNeedsMoreThanItMayHaveIsRefused) {
  EXPECT_THAT(Wrong("  group: {globalBatch: 64, minMembers: 5}\n"),
              HasSubstr("5 is more than the 4 workers"));
  EXPECT_THAT(Wrong("  group: {globalBatch: 64, minMembers: 3, maxMembers: 2}\n"),
              HasSubstr("3 is more than the 2 workers"));
}

TEST(GroupFieldsTest, AGroupHasServersOnlyIfTheFileSaysSo) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseGroup("  group: {globalBatch: 64}\n"));
  EXPECT_EQ(job.ps.replicas, 0u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec none, ParseGroup(""));
  EXPECT_EQ(none.ps.replicas, 1u);
  const auto with = [](const std::string& ps, const std::string& spec) {
    return ParseJobFile(
        "apiVersion: muster/v1\nkind: TrainingJob\nmetadata: {name: text}\nspec:\n"
        "  datasets: [{name: train, files: [a], minibatchSize: 64}]\n"
        "  replicaSpecs: {ps: {replicas: " +
            ps + "}, worker: {command: [./trainer]}}\n" + spec,
        "job.yaml", "/jobs");
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec two, with("2", "  group: {globalBatch: 64}\n"));
  EXPECT_EQ(two.ps.replicas, 2u);
  EXPECT_THAT(std::string(with("0", "").status().message()),
              AllOf(HasSubstr("spec.replicaSpecs.ps.replicas"), HasSubstr("spec.group")));
}

TEST(GroupFieldsTest, NothingOfAGroupIsKeptByEpoch) {
  const std::string group = "  group: {globalBatch: 64}\n";
  for (const char* keep : {"{best: test/auc}", "{every: 2}"}) {
    const std::string training = std::string("  training: {keep: ") + keep + "}\n";
    EXPECT_THAT(Wrong(group + training),
                AllOf(HasSubstr("spec.training.keep"), HasSubstr("remove spec.training.keep")))
        << keep;
    EXPECT_THAT(ParseGroup(training), IsOk()) << keep << ", without a group";
  }
  EXPECT_THAT(ParseGroup(group + "  training: {keep: {last: 2}}\n"), IsOk()) << "it keeps nothing";
}

TEST(GroupFieldsTest, ABeginAgainIsNeededForAnotherBatch) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseGroup("  group: {globalBatch: 64}\n"));
  const std::pair<std::string, std::string> batch{"spec.group.globalBatch", "64"};
  EXPECT_THAT(FixedFields(job), ::testing::Contains(batch));
}

}  // namespace
}  // namespace muster
