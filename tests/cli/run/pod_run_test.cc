#include "cli/run/pod_run.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/token_file.h"
#include "cli/run/run_supervisor.h"
#include "cli/show/output.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

TEST(PodRunTest, TheTokenOfTheSecretIsTheJobs) {
  TempDir folder;
  const StateDirectory state(folder.File("state"));
  ASSERT_THAT(state.Create(), IsOk());
  EXPECT_THAT(TakeToken(state, folder.File("token")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("")));
  ASSERT_THAT(WriteFileAtomically(folder.File("token"), "not a token\n"), IsOk());
  EXPECT_FALSE(TakeToken(state, folder.File("token")).ok());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string token, LoadOrMakeToken(folder.File("other")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(folder.File("other"), 1'000));
  ASSERT_THAT(WriteFileAtomically(folder.File("token"), text), IsOk());
  ::chmod(folder.File("token").c_str(), 0440);
  // Again and again: a pod that is moved finds the copy of the one before.
  for (int pod = 0; pod < 2; ++pod) {
    ASSERT_THAT(TakeToken(state, folder.File("token")), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string taken, LoadToken(state.token()));
    EXPECT_EQ(taken, token);
  }
}

TEST(PodRunTest, TheJobFileOfAnotherJobIsRefusedForNow) {
  TempDir folder;
  const std::string mounted = folder.File("digest");
  EXPECT_THAT(CheckJobFile("", mounted), IsOk()) << "of an older muster";
  const absl::Status absent = CheckJobFile("ab", mounted);
  EXPECT_EQ(RefusalInCluster(absent), kExitUnreachable) << "the Job tries again";
  ASSERT_THAT(WriteFileAtomically(mounted, "cd"), IsOk());
  EXPECT_THAT(CheckJobFile("ab", mounted),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not that of this Job")));
  EXPECT_THAT(CheckJobFile("cd", mounted), IsOk());
}

TEST(PodRunTest, OneErrorNamesEveryMissingRight) {
  EXPECT_THAT(CheckRightsOfJob("ml", [](const kubernetes::Right&) { return true; }), IsOk());
  const std::set<std::pair<std::string, std::string>> lacks = {{"create", ""}, {"get", "log"}};
  const absl::Status missing = CheckRightsOfJob("ml", [&](const kubernetes::Right& right) {
    return !lacks.contains({right.verb, right.subresource});
  });
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kPermissionDenied,
                                HasSubstr("in the namespace ml: create pods, get pods/log. ")));
  EXPECT_EQ(RefusalInCluster(missing), kExitUsage);
  const absl::Status away =
      CheckRightsOfJob("ml", [](const kubernetes::Right&) -> absl::StatusOr<bool> {
        return absl::UnavailableError("no API server");
      });
  EXPECT_THAT(away, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no API server")));
  EXPECT_EQ(RefusalInCluster(away), kExitUnreachable) << "the Job tries again";
  const absl::Status cannot_resize = CheckRightsOfJob(
      "ml", [](const kubernetes::Right& right) { return TextOf(right) != "patch pods/resize"; });
  EXPECT_THAT(cannot_resize, IsOk()) << "the role admin lacks it, and a job does without";
}

TEST(PodRunTest, ADenialMayPass) {
  for (const absl::Status& denied :
       {absl::PermissionDeniedError("no Role"), absl::UnauthenticatedError("no account")}) {
    int asked = 0;
    int pauses = 0;
    const auto pause = [&] { ++pauses; };
    EXPECT_THAT(AskWhileDenied([&] { return ++asked > 2 ? absl::OkStatus() : denied; }, pause),
                IsOk());
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(pauses, 2);
    pauses = 0;
    EXPECT_EQ(AskWhileDenied([&] { return denied; }, pause), denied);
    EXPECT_EQ(pauses * kRightsPause, std::chrono::seconds(60));
  }
  const absl::Status away = absl::UnavailableError("no API server");
  const auto never = [] { FAIL() << "the Job tries again"; };
  EXPECT_EQ(AskWhileDenied([&] { return away; }, never), away);
  EXPECT_EQ(RefusalInCluster(absl::UnauthenticatedError("no account")), kExitUnreachable);
}

TEST(PodRunTest, TheTerminationMessageFits) {
  const auto parsed =
      nlohmann::json::parse(TerminationMessage({"failed", 1, "worker-0: no model"}));
  EXPECT_EQ(parsed, nlohmann::json({{"outcome", "failed"},
                                    {"exit_code", 1},
                                    {"reason", "worker-0: no model"},
                                    {"progressed", false}}));
  for (const std::string& reason :
       {std::string(5'000, 'x'), std::string(5'000, '\1'), std::string(5'000, '\xff')}) {
    const std::string text = TerminationMessage({"failed", 1, reason});
    EXPECT_LE(text.size(), 4'096u);
    EXPECT_GT(text.size(), 3'000u);
    EXPECT_TRUE(nlohmann::json::parse(text, nullptr, false).is_object());
  }
}

/// A pod of the Job "run-1" that ended with `code`; a later `number` is a younger pod.
nlohmann::json EndedPod(int number, int code, const std::string& message) {
  const nlohmann::json end = {{"exitCode", code}, {"message", message}};
  return {{"metadata",
           {{"name", fmt::format("job-{}", number)},
            {"uid", fmt::format("uid-{}", number)},
            {"creationTimestamp", fmt::format("2026-01-01T00:{:02}:00Z", number)},
            {"ownerReferences", {{{"uid", "run-1"}}}}}},
          {"status",
           {{"phase", "Failed"},
            {"containerStatuses", {{{"name", "muster"}, {"state", {{"terminated", end}}}}}}}}};
}

/// Pods that give the run up, each for its own reason, oldest first.
std::vector<nlohmann::json> PodsInVain(int count) {
  std::vector<nlohmann::json> pods;
  for (int i = 0; i < count; ++i) {
    pods.push_back(EndedPod(
        i, kExitUnreachable,
        TerminationMessage({"given up", kExitUnreachable, fmt::format("crash loop {}", i)})));
  }
  return pods;
}

constexpr int kMax = static_cast<int>(kPodsInVainMax);

TEST(PodRunTest, ARunThatKeepsFailingWithoutProgressIsGivenUp) {
  EXPECT_THAT(CheckPodsInVain(PodsInVain(kMax - 1), "run-1"), IsOk());
  std::vector<nlohmann::json> pods = PodsInVain(kMax);
  std::ranges::reverse(pods);
  EXPECT_THAT(CheckPodsInVain(pods, "run-1"),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("10 pods in a row have ended without progress of the job; the "
                                 "newest, job-9: crash loop 9")));
  EXPECT_THAT(CheckPodsInVain(pods, "run-2"), IsOk()) << "another run of the job";
  pods.front()["status"]["phase"] = "Running";
  EXPECT_THAT(CheckPodsInVain(pods, "run-1"), IsOk()) << "this pod";
}

TEST(PodRunTest, WithoutAMessageTheExitIsTheReason) {
  std::vector<nlohmann::json> pods = PodsInVain(kMax - 1);
  pods.push_back(EndedPod(kMax, 137, ""));
  pods.back()["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] = "OOMKilled";
  EXPECT_THAT(CheckPodsInVain(pods, "run-1"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("job-10: failed: out of memory")));
}

TEST(PodRunTest, ProgressBeginsTheCountAgain) {
  for (const std::string& message :
       {ProgressMessage(), TerminationMessage({"given up", 4, "", /*progressed=*/true})}) {
    std::vector<nlohmann::json> pods = PodsInVain(kMax + 5);
    pods[10] = EndedPod(10, 4, message);
    EXPECT_THAT(CheckPodsInVain(pods, "run-1"), IsOk());
    pods[4] = EndedPod(4, 4, message);
    EXPECT_THAT(CheckPodsInVain(pods, "run-1"), IsOk());
    pods[10] = PodsInVain(11).back();
    EXPECT_THAT(CheckPodsInVain(pods, "run-1"),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("in a row")));
  }
}

TEST(PodRunTest, PodsThatWereTakenAwayNeverCount) {
  const auto check = [](const std::function<void(nlohmann::json*)>& change) {
    std::vector<nlohmann::json> pods = PodsInVain(kMax);
    change(&pods[3]);
    return CheckPodsInVain(pods, "run-1");
  };
  EXPECT_THAT(check([](nlohmann::json* pod) {
                (*pod)["status"]["conditions"] = {{{"type", "DisruptionTarget"},
                                                   {"status", "True"},
                                                   {"reason", "PreemptionByScheduler"}}};
              }),
              IsOk());
  EXPECT_THAT(check([](nlohmann::json* pod) {
                (*pod)["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z";
              }),
              IsOk());
  EXPECT_THAT(check([](nlohmann::json* pod) { (*pod)["status"].erase("containerStatuses"); }),
              IsOk())
      << "its machine refused it";
  for (const auto state : {RunOutcome::State::kLeft, RunOutcome::State::kTakenOver}) {
    EXPECT_THAT(
        check([&](nlohmann::json* pod) { *pod = EndedPod(3, ExitCode(state), "no message"); }),
        IsOk());
  }
}

TEST(PodRunTest, TheTerminationLogIsWrittenInPlace) {
  TempDir folder;
  const std::string path = folder.File("log");
  ASSERT_THAT(WriteFileAtomically(path, "a long text from before"), IsOk());
  struct stat before{};
  struct stat after{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  WriteTerminationLog(path, "short");
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(ReadFile(path, 100).value_or(""), "short");
}

}  // namespace
}  // namespace muster
