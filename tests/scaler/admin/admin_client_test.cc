#include "scaler/admin/admin_client.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/query_commands.h"
#include "cli/state_directory.h"
#include "master/service/master_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr std::chrono::seconds kLong{20};

/// A master of the job "id-1".
class AdminClientTest : public ::testing::Test {
 protected:
  AdminClientTest() {
    MasterServer::Options options;
    options.job.name = "flights";
    options.job.partitions = options.core.partitions = 1;
    options.job.snapshot_directory = folder_.File("snapshots");
    options.core.datasets = {
        {"train", DatasetMode::kTrain, 1, 2, 20, 5, [](EpochIndex, ShardIndex) { return 10u; }}};
    options.core.run_id = "run-1";
    options.listen_address = "127.0.0.1:0";
    auto server = MasterServer::Start(std::move(options), &journal_, &clock_);
    EXPECT_THAT(server.status(), IsOk());
    server_ = *std::move(server);
    address_ = "127.0.0.1:" + std::to_string(server_->port());
  }
  std::unique_ptr<AdminClient> Client(const JobIdentity& job) {
    return MakeAdminClient(address_, job, kLong, WhenAway::kFail);
  }
  v1::JobState State() { return Client({})->GetStatus()->state(); }

  testing::TempDir folder_;
  const SystemClock clock_;
  MemoryJournal journal_{DurableState{}, "id-1"};
  std::unique_ptr<MasterServer> server_;
  std::string address_;
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
    return CancelCommand({.query = {.target = {.state_directory = state.path()}}, .reason = ""});
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
