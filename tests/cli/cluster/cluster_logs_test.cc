#include "cli/cluster/cluster_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/show/output.h"
#include "tests/cli/cluster/fake_cluster.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct ClusterLogs : ::testing::Test {
  ClusterLogs() {
    options.query.target.cluster = fake.Target();
    options.query.target.cluster.job = "ads";
    for (const std::string node : {"ps-0", "worker-0"}) {
      fake.Put(
          "pods/" + node,
          {{"metadata",
            {{"name", node}, {"labels", {{"muster/job", "ads"}, {"muster/node", node}}}}},
           {"status",
            {{"containerStatuses",
              json::array({{{"name", "muster"}, {"state", {{"running", json::object()}}}}})}}}});
    }
    fake.Put("pods/worker-0/log", "it learns\n");
  }
  int Logs() {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = LogsOnCluster(options);
    out = ::testing::internal::GetCapturedStdout();
    err = ::testing::internal::GetCapturedStderr();
    return code;
  }

  FakeCluster fake;
  LogsOptions options;
  std::string out, err;
};

TEST_F(ClusterLogs, ALogThatCannotBeHadHidesNoOther) {
  EXPECT_EQ(Logs(), kExitFailed);
  EXPECT_EQ(out, "[worker-0] it learns\n");
  EXPECT_THAT(err, AllOf(HasSubstr("ps-0 (ps-0): "), HasSubstr("1 of 2 logs could not be had")));
  fake.Put("pods/ps-0/log", "it serves\n");
  EXPECT_EQ(Logs(), kExitSucceeded);
  EXPECT_EQ(out, "[ps-0] it serves\n[worker-0] it learns\n");
}

TEST_F(ClusterLogs, FollowingOutlivesAServerThatIsAway) {
  fake.Put("pods/ps-0/log", "it serves\n");
  fake.Put(
      "jobs/ads",
      {{"metadata", {{"name", "ads"}, {"uid", "u"}}},
       {"status", {{"conditions", json::array({{{"type", "Complete"}, {"status", "True"}}})}}}});
  fake.FailNext("jobs/ads", 2);
  options.follow = true;
  EXPECT_EQ(Logs(), kExitSucceeded);
  EXPECT_THAT(out, AllOf(HasSubstr("it serves"), HasSubstr("it learns")));
  const size_t first = err.find("waiting for it");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(err.find("waiting for it", first + 1), std::string::npos) << "it is said once";
}

}  // namespace
}  // namespace muster::cluster
