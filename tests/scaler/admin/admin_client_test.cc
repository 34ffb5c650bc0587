#include "scaler/admin/admin_client.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/state_directory.h"
#include "cli/steer/order_commands.h"
#include "tests/scaler/admin/small_master.h"
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
  v1::JobState State() { return Client({})->GetStatus()->state(); }

  testing::TempDir folder_;
  const testing::SmallMaster master_;
  const std::string address_ = master_.address();
};

TEST_F(AdminClientTest, AMasterOfAnotherJobIsAsGoodAsNone) {
  const absl::Status status = Client({"id-2", "trains"})->Drain();
  EXPECT_TRUE(IsUnreachable(status));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr(address_), HasSubstr("job 'flights' (id id-1)"),
                                     HasSubstr("job 'trains' (id id-2)"))));
  EXPECT_EQ(State(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Client({"id-1", "flights"})->Drain(), IsOk());
  EXPECT_NE(State(), v1::JOB_STATE_RUNNING);
}

TEST_F(AdminClientTest, ACommandNeverReachesAnotherJob) {
  const StateDirectory state(folder_.File("state"));
  ASSERT_THAT(state.Create(), IsOk());
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
  EXPECT_EQ(State(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cancel({"id-1", "flights"}), kExitSucceeded);
  EXPECT_EQ(State(), v1::JOB_STATE_CANCELLED);
}

}  // namespace
}  // namespace muster
