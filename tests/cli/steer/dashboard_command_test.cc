#include "cli/steer/dashboard_command.h"

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

}  // namespace
}  // namespace muster::steer::testing
