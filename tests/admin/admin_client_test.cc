#include "admin/admin_client.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "base/file.h"
#include "cli/show/output.h"
#include "cli/state/state_directory.h"
#include "cli/steer/cancel_command.h"
#include "tests/admin/small_master.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

/// A master of the job "id-1".
class AdminClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<AdminClient> Client(const JobIdentity& job) {
    return master_.Client(job, WhenAway::kFail);
  }
  JobState State() { return Client({})->GetStatus()->state; }

  testing::TempDir folder_;
  testing::SmallMaster master_;
  const std::string address_ = master_.address();
};

TEST_F(AdminClientTest, AMasterOfAnotherJobIsAsGoodAsNone) {
  const absl::Status status = Client({"id-2", "trains"})->Drain();
  EXPECT_TRUE(IsUnreachable(status));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr(address_), HasSubstr("job 'flights' (id id-1)"),
                                     HasSubstr("job 'trains' (id id-2)"))));
  EXPECT_EQ(State(), JobState::kRunning);
  EXPECT_THAT(Client({"id-1", "flights"})->Drain(), IsOk());
  EXPECT_NE(State(), JobState::kRunning);
}

TEST_F(AdminClientTest, ACommandNeverReachesAnotherJob) {
  const StateDirectory state(folder_.File("state"));
  ASSERT_THAT(state.Create(), IsOk());
  ASSERT_THAT(MakeDirectories(state.scaler()), IsOk());
  std::filesystem::copy_file(master_.token_file(), state.token());
  const auto cancel = [&](const JobIdentity& job) {
    EXPECT_THAT(
        state.WriteEndpoint({.master = address_, .pid = ::getpid(), .run_id = "a", .job = job}),
        IsOk());
    return steer::CancelCommand(
        {.query = {.target = {.state_directory = state.path()}}, .reason = ""});
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(cancel({"id-2", "flights"}), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("another job has taken it over"));
  EXPECT_EQ(State(), JobState::kRunning);
  EXPECT_EQ(cancel({"id-1", "flights"}), kExitSucceeded);
  EXPECT_EQ(State(), JobState::kCancelled);
}

TEST_F(AdminClientTest, TheEndCancelsACallThatWaitsForTheMaster) {
  master_.Stop();
  const std::unique_ptr<AdminClient> client =
      MakeAdminClient({.address = address_, .job = {}, .token_file = folder_.File("token")},
                      std::chrono::hours(1), WhenAway::kWait);
  std::future<absl::Status> call = std::async(std::launch::async, [&] { return client->Drain(); });
  client->End();  // before the call, or while it waits
  EXPECT_THAT(call.get(), StatusIs(absl::StatusCode::kCancelled, ::testing::_));
  EXPECT_THAT(client->Drain(), StatusIs(absl::StatusCode::kCancelled, ::testing::_));
}

TEST_F(AdminClientTest, WithoutTheTokenNothingIsAnswered) {
  const auto ask = [this](const std::string& token_file) {
    return MakeAdminClient(
               {.address = address_, .job = {"id-1", "flights"}, .token_file = token_file},
               std::chrono::seconds(20), WhenAway::kFail)
        ->Drain();
  };
  EXPECT_THAT(ask(folder_.File("absent")),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("scaler/token")));
  ASSERT_THAT(WriteFileAtomically(folder_.File("open"), std::string(64, 'a')), IsOk());
  ASSERT_EQ(::chmod(folder_.File("open").c_str(), 0644), 0);
  EXPECT_THAT(ask(folder_.File("open")),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("must have 0600")));
  EXPECT_EQ(State(), JobState::kRunning);
}

TEST_F(AdminClientTest, AWrongModeOfTheTokenIsNoSilenceOfTheMasterAndMendsItself) {
  ASSERT_EQ(::chmod(master_.token_file().c_str(), 0644), 0);
  EXPECT_THAT(Client({})->GetStatus(),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("must have 0600")));
  EXPECT_THAT(Client({})->GetStatus(), IsOk()) << "the master has made a new one meanwhile";
}

TEST_F(AdminClientTest, AMasterThatIsGoneIsSaidToBeGoneWhateverTheTokenIs) {
  ASSERT_EQ(::chmod(master_.token_file().c_str(), 0644), 0);
  master_.Stop();
  EXPECT_TRUE(IsUnreachable(Client({})->GetStatus().status()));
}

}  // namespace
}  // namespace muster
