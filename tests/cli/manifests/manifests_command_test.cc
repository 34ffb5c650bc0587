#include "cli/manifests/manifests_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "cli/show/output.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class ManifestsCommandTest : public ::testing::Test {
 protected:
  struct Result {
    int code;
    std::string out, err;
  };
  Result Run(ManifestsOptions options) const {
    options.job_file = folder_.File("job.yaml");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = ManifestsCommand(options);
    return {code, ::testing::internal::GetCapturedStdout(),
            ::testing::internal::GetCapturedStderr()};
  }
  void Write(const std::string& files) {
    ASSERT_THAT(WriteFileAtomically(folder_.File("job.yaml"), R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  datasets: [{name: train, files: [)" + files + R"(]}]
  replicaSpecs: {worker: {command: [trainer]}}
  kubernetes: {image: img}
)"),
                testing::IsOk());
  }

  const testing::TempDir folder_;
};

TEST_F(ManifestsCommandTest, PrintsObjectsOrSecretsNeverBoth) {
  Write("/data/a");
  const Result objects = Run({});
  EXPECT_EQ(objects.code, kExitSucceeded);
  EXPECT_THAT(objects.out, HasSubstr("kind: Job\n"));
  EXPECT_THAT(objects.out, Not(HasSubstr("kind: Secret\n")));
  const Result secrets = Run({.secrets = true});
  EXPECT_EQ(secrets.code, kExitSucceeded);
  EXPECT_THAT(secrets.out, Not(HasSubstr("kind: Job\n")));
  EXPECT_THAT(secrets.out, HasSubstr("kind: Secret\n"));
}

TEST_F(ManifestsCommandTest, ABaseForKustomize) {
  Write("/data/a");
  const std::string base = folder_.File("deploy/base");
  const Result result = Run({.kustomize = base});
  EXPECT_EQ(result.code, kExitSucceeded) << result.err;
  EXPECT_THAT(result.err, HasSubstr("kubectl apply -k " + base));
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(base)) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_THAT(names, UnorderedElementsAre("kustomization.yaml", "serviceaccount.yaml", "role.yaml",
                                          "rolebinding.yaml", "configmap.yaml", "service.yaml",
                                          "job.yaml", "persistentvolumeclaim-flights-state.yaml",
                                          "persistentvolumeclaim-flights-snapshots.yaml"));
  // Written again, it is the same.
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string before, ReadFile(base + "/job.yaml", 1 << 20));
  EXPECT_EQ(Run({.kustomize = base}).code, kExitSucceeded);
  EXPECT_EQ(*ReadFile(base + "/job.yaml", 1 << 20), before);
}

TEST_F(ManifestsCommandTest, WhatIsWrong) {
  EXPECT_EQ(Run({}).code, kExitUsage);  // no job file
  Write("a.csv");
  const Result relative = Run({});
  EXPECT_EQ(relative.code, kExitUsage);
  EXPECT_THAT(relative.err, HasSubstr("'a.csv' is relative to the job file"));
  Write("/data/a");
  const Result both = Run({.secrets = true, .kustomize = folder_.File("base")});
  EXPECT_EQ(both.code, kExitUsage);
  EXPECT_THAT(both.err, HasSubstr("leave out --kustomize"));
  EXPECT_NE(Run({.kustomize = folder_.File("job.yaml")}).code, kExitSucceeded);
}

}  // namespace
}  // namespace muster
