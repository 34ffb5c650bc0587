#include "cli/state/scaler_link.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

class ScalerLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(state_.Create(), IsOk());
    ASSERT_THAT(MakeDirectories(state_.scaler()), IsOk());
  }
  void Serve() {
    ASSERT_THAT(WriteFileAtomically(state_.token(), kToken, FileAccess::kOwnerOnly), IsOk());
    ASSERT_THAT(state_.WriteRestAddress({.port = 20'200, .pid = ::getpid()}), IsOk());
  }

  const std::string kToken = std::string(64, 'a');
  TempDir folder_;
  const StateDirectory state_{folder_.path()};
};

TEST_F(ScalerLinkTest, NoJobNoScalerNoToken) {
  EXPECT_THAT(FindScaler(state_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no job runs with")));
  ASSERT_THAT(state_.WriteEndpoint({.master = "127.0.0.1:1", .pid = ::getpid(), .run_id = "a"}),
              IsOk());
  EXPECT_THAT(FindScaler(state_),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("the job runs"), HasSubstr("try again"))));
  Serve();
  MUSTER_ASSERT_OK_AND_ASSIGN(const scaler::rest::RestClient client, FindScaler(state_));
  EXPECT_EQ(client.port(), 20'200);
  ASSERT_EQ(::chmod(state_.token().c_str(), 0640), 0);
  EXPECT_THAT(FindScaler(state_), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("0600")));
  ASSERT_EQ(::unlink(state_.token().c_str()), 0);
  EXPECT_THAT(FindScaler(state_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(state_.token())));
}

TEST_F(ScalerLinkTest, LogsGetTheDashboardWithoutItsToken) {
  EXPECT_EQ(DashboardAddress(state_, AddressFor::kTerminal), "");
  Serve();
  EXPECT_EQ(DashboardAddress(state_, AddressFor::kTerminal),
            "http://127.0.0.1:20200/#token=" + kToken);
  EXPECT_EQ(DashboardAddress(state_, AddressFor::kLog),
            "http://127.0.0.1:20200/ (token: " + state_.token() + ")");
  ASSERT_EQ(::chmod(state_.token().c_str(), 0640), 0);
  EXPECT_THAT(DashboardAddress(state_, AddressFor::kTerminal), HasSubstr("mode 0640"));
  ASSERT_THAT(
      state_.WriteRestAddress({.port = 20'200, .pid = ::getpid(), .certificates = "/s/tls"}),
      IsOk());
  EXPECT_THAT(DashboardAddress(state_, AddressFor::kLog), HasSubstr("https://127.0.0.1:20200/ "));
}

}  // namespace
}  // namespace muster
