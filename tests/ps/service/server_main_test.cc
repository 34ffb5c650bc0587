#include "ps/service/server_main.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

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

}  // namespace
}  // namespace muster::ps
