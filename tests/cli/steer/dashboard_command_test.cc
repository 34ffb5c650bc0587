#include "cli/steer/dashboard_command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/show/output.h"
#include "tests/cli/steer/steer_fixture.h"

namespace muster::steer::testing {
namespace {

using ::testing::HasSubstr;

class DashboardCommandTest : public SteerFixture {};

TEST_F(DashboardCommandTest, PrintsTheAddressWithTheToken) {
  WriteEndpoint("127.0.0.1:1");
  StartScaler();
  const std::string address = "http://127.0.0.1:" + std::to_string(port_) + "/#token=" + token_;
  EXPECT_EQ(Call([&] { return DashboardCommand({.query = Query()}); }), kExitSucceeded);
  EXPECT_EQ(out_, address + "\n");
  EXPECT_EQ(Call([&] { return DashboardCommand({.query = Query(OutputFormat::kJson)}); }),
            kExitSucceeded);
  EXPECT_EQ(nlohmann::json::parse(out_)["address"], address);
}

TEST_F(DashboardCommandTest, WithoutAJobThatRunsThereIsNone) {
  EXPECT_EQ(Call([&] { return DashboardCommand({.query = Query()}); }), kExitUnreachable);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("no job runs"));
}

TEST_F(DashboardCommandTest, ABrowserThatCannotBeStartedEndsItsOwnProcessOnly) {
  WriteEndpoint("127.0.0.1:1");
  StartScaler();
  ASSERT_THAT(MakeDirectories(state_.run()), muster::testing::IsOk());
  const pid_t self = ::getpid();
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", folder_.path().c_str(), 1);
  const int code = Call([&] {
    const int result = DashboardCommand({.query = Query(), .open = true, .stays = true});
    if (::getpid() != self) ::_exit(77);
    // Before the output is read.
    int status = 0;
    EXPECT_GT(::wait(&status), 0);
    EXPECT_EQ(WEXITSTATUS(status), kExitFailed) << "it came back";
    return result;
  });
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(code, kExitSucceeded);
  EXPECT_THAT(err_, HasSubstr("open the address by hand"));
}

}  // namespace
}  // namespace muster::steer::testing
