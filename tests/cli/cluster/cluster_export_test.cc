#include "cli/cluster/cluster_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "cli/export/export_messages.h"
#include "cli/show/output.h"
#include "job/in_cluster.h"
#include "proto/exported/sha256.h"
#include "tests/cli/cluster/fake_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;

constexpr char kExportedJobFile[] =
    "apiVersion: muster/v1\nkind: TrainingJob\nmetadata: {name: ads}\nspec:\n"
    "  datasets: [{name: train, files: [/data/a]}]\n"
    "  replicaSpecs: {worker: {command: [trainer]}}\n";
constexpr char kExportPodsText[] =
    R"({"ps": {"spec": {"containers": [{"name": "muster", "image": "img"}],
        "volumes": [{"name": "s", "persistentVolumeClaim": {"claimName": "ads-snapshots"}}]}}})";

json StatusOf(const std::string& state, const json& details, const std::string& phase) {
  return {
      {"phase", phase},
      {"containerStatuses", json::array({{{"name", "muster"}, {"state", {{state, details}}}}})}};
}

/// A job that has ended, and whose volumes are there.
class ExportOfAFakeJob : public ::testing::Test {
 protected:
  ExportOfAFakeJob() {
    options_.query.target.cluster = fake_.Target();
    options_.query.target.cluster.job = "ads";
    options_.output_directory = folder_.path() + "/weights";
    fake_.Put("configmaps/ads-muster",
              {{"metadata", {{"name", "ads-muster"}}},
               {"data", {{"job.yaml", kExportedJobFile}, {"pods.json", kExportPodsText}}}});
    fake_.Put("secrets/ads-muster",
              {{"metadata", {{"name", "ads-muster"}}}, {"data", {{"token", "dG9rZW4="}}}});
    for (const char* const claim : {"ads-state", "ads-snapshots"}) {
      fake_.Put(std::string("persistentvolumeclaims/") + claim, {{"metadata", {{"name", claim}}}});
    }
    PutEndedJob();
    fake_.SetStatusOfNewPods(StatusOf("running", json::object(), "Running"));
    const std::string sums = FormatSums({{"a.npy", Sha256Hex("weights")}});
    const exporting::ExportReply reply{
        .tables = 1, .files = {{"a.npy", 7}, {exporting::kSumsName, sums.size()}}};
    Answer(TextOf(reply) + "\nweights" + sums);
  }
  ~ExportOfAFakeJob() override {
    // The verb has blocked signals for the process that it ends.
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
  }

  void PutEndedJob() {
    fake_.Put(
        "jobs/ads",
        {{"metadata", {{"name", "ads"}, {"uid", "u"}}},
         {"status", {{"conditions", json::array({{{"type", "Complete"}, {"status", "True"}}})}}}});
  }
  void Answer(const std::string& answer) {
    fake_.SetPort(kInClusterExportPort, std::string(exporting::kExportHello) + "\n", answer);
  }
  /// The exit code; said_ is what was printed as errors and notes.
  int Export() {
    ::testing::internal::CaptureStderr();
    const int code = ExportOnCluster(options_);
    said_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  testing::TempDir folder_;
  FakeCluster fake_;
  ExportCommandOptions options_;
  std::string said_;
};

TEST_F(ExportOfAFakeJob, APodMakesItAndIsDeleted) {
  ASSERT_EQ(Export(), kExitSucceeded) << said_;
  EXPECT_EQ(*ReadFile(options_.output_directory + "/a.npy", 100), "weights");
  EXPECT_THAT(fake_.changes(), ElementsAre("POST pods/ads-export", "DELETE pods/ads-export"));
  const absl::StatusOr<exporting::ExportRequest> request =
      exporting::ParseRequest(fake_.heard().substr(0, fake_.heard().find('\n')));
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->token, "token");
  EXPECT_THAT(request->manifest, IsEmpty());
}

TEST_F(ExportOfAFakeJob, TheJobMayBeGone) {
  fake_.Put("jobs/ads",
            json{{"metadata", {{"name", "ads"}, {"uid", "u"}, {"deletionTimestamp", "t"}}}});
  EXPECT_EQ(Export(), kExitSucceeded) << said_;
}

TEST_F(ExportOfAFakeJob, AnErrorOfThePodDeletesItToo) {
  Answer(TextOf(exporting::ExportReply{
             .status = absl::FailedPreconditionError("there is nothing to export")}) +
         "\n");
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(said_, HasSubstr("there is nothing to export"));
  EXPECT_TRUE(fake_.At("pods/ads-export").is_null());
  EXPECT_FALSE(std::filesystem::exists(options_.output_directory));
}

TEST_F(ExportOfAFakeJob, APodThatCannotStartIsDeleted) {
  fake_.SetStatusOfNewPods(
      StatusOf("terminated", {{"exitCode", 127}, {"message", "muster: not found"}}, "Failed"));
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(said_, HasSubstr("muster: not found"));
  EXPECT_TRUE(fake_.At("pods/ads-export").is_null());
}

TEST_F(ExportOfAFakeJob, MissingRightsAreNamedBeforeAnythingIsMade) {
  fake_.Deny("create pods");
  fake_.Deny("create pods/portforward");
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(
      said_, AllOf(HasSubstr("namespace team"), HasSubstr("create pods, create pods/portforward")));
  EXPECT_THAT(fake_.changes(), IsEmpty());
}

TEST_F(ExportOfAFakeJob, WithoutItsVolumesThereIsNothingToDo) {
  fake_.Put(
      "configmaps/ads-muster",
      {{"metadata", {{"name", "ads-muster"}}},
       {"data",
        {{"job.yaml", std::string(kExportedJobFile) + "  kubernetes: {state: {claim: lost}}\n"},
         {"pods.json", kExportPodsText}}}});
  EXPECT_EQ(Export(), kExitUnreachable);
  EXPECT_THAT(said_, HasSubstr("the claim lost is not there"));
  EXPECT_THAT(fake_.changes(), IsEmpty());
}

TEST_F(ExportOfAFakeJob, AnEarlierExportIsRemovedIfItIsOver) {
  json earlier = {{"metadata", {{"name", "ads-export"}, {"uid", "e"}}},
                  {"spec", {{"containers", json::array({{{"name", "muster"}}})}}}};
  earlier["status"] = StatusOf("running", json::object(), "Running");
  fake_.Put("pods/ads-export", earlier);
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(said_, HasSubstr("another export of the job runs"));
  EXPECT_THAT(fake_.changes(), IsEmpty());
  earlier["status"] = StatusOf("terminated", {{"exitCode", 1}}, "Failed");
  fake_.Put("pods/ads-export", earlier);
  EXPECT_EQ(Export(), kExitSucceeded) << said_;
}

TEST_F(ExportOfAFakeJob, ABucketIsWrittenByThePod) {
  options_.output_directory = "s3://bucket/prefix";
  Answer(TextOf(exporting::ExportReply{.tables = 3}) + "\n");
  EXPECT_EQ(Export(), kExitSucceeded) << said_;
  EXPECT_THAT(fake_.heard(), HasSubstr("s3://bucket/prefix"));
}

TEST_F(ExportOfAFakeJob, AnotherVersionIsSaid) {
  fake_.SetPort(kInClusterExportPort, "hello\n", "");
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(said_, HasSubstr("another version of muster"));
  EXPECT_TRUE(fake_.At("pods/ads-export").is_null());
}

TEST_F(ExportOfAFakeJob, AnOutputThatIsThereAsksNobody) {
  ASSERT_TRUE(std::filesystem::create_directories(options_.output_directory + "/x"));
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_THAT(said_, HasSubstr("is there already"));
  EXPECT_THAT(fake_.changes(), IsEmpty());
}

}  // namespace
}  // namespace muster::cluster
