#include "cli/run/pod_environment.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

class PodEnvironmentTest : public ::testing::Test {
 protected:
  ReadVariable Read() {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    };
  }

  std::map<std::string, std::string> variables_ = {
      {"MUSTER_NAMESPACE", "ml"},  {"MUSTER_JOB_ID", "0123abcd"},
      {"MUSTER_JOB_NAME", "ads"},  {"MUSTER_RUN_ID", "6f9619ff-8b86-d011-b42d"},
      {"MUSTER_NODE", "worker-3"}, {"MUSTER_START", "2"}};
};

TEST_F(PodEnvironmentTest, EachPodReadsItsPart) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const PodEnvironment job, ParseJobPod(Read()));
  EXPECT_EQ(job.job_namespace, "ml");
  EXPECT_EQ(job.job_id, "0123abcd");
  EXPECT_EQ(job.job, "ads");
  EXPECT_EQ(job.run_id, "6f9619ff-8b86-d011-b42d");
  variables_.erase("MUSTER_JOB_NAME");
  variables_.erase("MUSTER_RUN_ID");
  MUSTER_ASSERT_OK_AND_ASSIGN(const PodEnvironment node, ParseNodePod(Read()));
  EXPECT_EQ(node.node, "worker-3");
  EXPECT_EQ(node.start, 2u);
}

TEST_F(PodEnvironmentTest, OneErrorSaysAllThatIsWrong) {
  variables_.erase("MUSTER_NAMESPACE");
  variables_["MUSTER_JOB_NAME"] = "";
  variables_["MUSTER_RUN_ID"] = "../x";
  EXPECT_THAT(ParseJobPod(Read()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("not set: MUSTER_NAMESPACE, MUSTER_JOB_NAME"),
                             HasSubstr("'../x' is no UID"), Not(HasSubstr("MUSTER_NODE")))));
  variables_["MUSTER_JOB_ID"] = "a b";
  for (const char* start : {"0", "-1", "2x", "99999999999"}) {
    variables_["MUSTER_START"] = start;
    EXPECT_THAT(ParseNodePod(Read()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("MUSTER_JOB_ID"), HasSubstr("MUSTER_START"))))
        << start;
  }
}

}  // namespace
}  // namespace muster
