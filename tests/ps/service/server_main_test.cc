#include "ps/service/server_main.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/failpoint.h"
#include "tests/ps/service/fake_master.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ServerMainTest, OptionsOutOfBoundsAreRefused) {
  const ServerOptions good{.name = "ps-0", .master_address = "127.0.0.1:1", .socket_directory = ""};
  ServerOptions options = good;
  options.name = "";
  EXPECT_THAT(RunServer(options), StatusIs(kInvalid, HasSubstr("name")));
  options = good;
  options.threads = 0;
  EXPECT_THAT(RunServer(options), StatusIs(kInvalid, HasSubstr("0 threads")));
  options = good;
  options.job_id = "a b";
  EXPECT_THAT(RunServer(options), StatusIs(kInvalid, HasSubstr("--job-id")));
  options = good;
  options.master_address = "";
  EXPECT_THAT(RunServer(options), StatusIs(kInvalid, HasSubstr("address")));
}

TEST(ServerMainDeathTest, SigtermIsACleanEnd) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        kill(getpid(), SIGTERM);  // waits for the server to take it
        const absl::Status status =
            RunServer({.name = "ps-0", .master_address = "127.0.0.1:1", .socket_directory = ""});
        _exit(status.ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

/// A master that owns a partition to the server, and tells it to end as soon as its lane hangs: the
/// lane stands still for an hour when it has tried to load.
TEST(ServerMainDeathTest, SigtermEndsAServerWhoseLaneHangs) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ::muster::testing::TempDir dir;
  EXPECT_EXIT(
      {
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        const std::string reached = dir.File("reached");
        if (!ArmFailpoints(
                 {.actions = "restore.after-serve=delay:3600000ms", .reached_file = reached})
                 .ok()) {
          _exit(3);
        }
        testing::FakeMaster master;
        master.SetScript([&](const ServerExchangeRequest& /*request*/) {
          // The file names every failpoint that was reached, others sooner than this one.
          std::ostringstream names;
          names << std::ifstream(reached).rdbuf();
          if (names.str().find("restore.after-serve") != std::string::npos) {
            kill(getpid(), SIGTERM);
          }
          const SnapshotNumber number(MasterIncarnation(1), 1);
          ServerExchangeReply reply;
          reply.master_incarnation = MasterIncarnation(1);
          reply.owns = {{PartitionId(0),
                         OwnerEpoch(1),
                         OwnerEpoch(1),
                         {},
                         true,
                         {number, DoneSeq(1), {{"nothing", 1, number}}}}};
          return reply;
        });
        const absl::Status status = RunServer({.name = "ps-0",
                                               .master_address = master.address(),
                                               .socket_directory = "",
                                               .drain_timeout = std::chrono::milliseconds(1),
                                               .end_timeout = std::chrono::milliseconds(1)});
        _exit(status.ok() ? 0 : 2);
      },
      ::testing::ExitedWithCode(1), "hangs");
}

}  // namespace
}  // namespace muster::ps
