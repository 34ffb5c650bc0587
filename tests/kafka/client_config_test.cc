#include "kafka/client_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kafka {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ClientConfigTest, SecretsComeFromFilesAndTheEnvironment) {
  muster::testing::TempDir folder;
  std::ofstream(folder.File("secret")) << "from a file\n";
  EXPECT_THAT(ReadSecret("file:" + folder.File("secret")), IsOk());
  EXPECT_EQ(*ReadSecret("file:" + folder.File("secret")), "from a file");
  ::setenv("MUSTER_TEST_SECRET", "from the environment", 1);
  EXPECT_EQ(*ReadSecret("env:MUSTER_TEST_SECRET"), "from the environment");
  EXPECT_THAT(ReadSecret("env:MUSTER_TEST_NO_SUCH"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("MUSTER_TEST_NO_SUCH")));
  EXPECT_THAT(ReadSecret("file:" + folder.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  std::ofstream(folder.File("long")) << std::string(70'000, 'x');
  EXPECT_THAT(ReadSecret("file:" + folder.File("long")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65536")));
}

TEST(ClientConfigTest, WrongSettingsAreNamedAndSecretsNotShown) {
  EXPECT_THAT(CheckConfig({{"127.0.0.1:9"}, {{"client.id", "x"}}, {}}), IsOk());
  EXPECT_THAT(CheckConfig({{"127.0.0.1:9"}, {{"no.such.setting", "x"}}, {}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no.such.setting")));
  EXPECT_THAT(CheckConfig({{"127.0.0.1:9"}, {{"socket.timeout.ms", "many"}}, {}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("socket.timeout.ms")));
  ::setenv("MUSTER_TEST_SECRET", "hunter2", 1);
  EXPECT_THAT(CheckConfig({{"127.0.0.1:9"}, {}, {{"socket.timeout.ms", "env:MUSTER_TEST_SECRET"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("socket.timeout.ms"), Not(HasSubstr("hunter2")))));
  EXPECT_THAT(CheckConfig({{"127.0.0.1:9"}, {}, {{"sasl.password", "env:MUSTER_TEST_NO_SUCH"}}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("sasl.password")));
}

// Some settings are looked at only when a client is made of them.
TEST(ClientConfigTest, SettingsThatNoClientCanBeMadeOfAreRefused) {
  const auto check = [](std::map<std::string, std::string> properties) {
    return CheckConfig({{"127.0.0.1:9"}, std::move(properties), {}});
  };
  EXPECT_THAT(check({{"security.protocol", "SASL_PLAINTEXT"}, {"sasl.mechanism", "NONSENSE"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NONSENSE")));
  EXPECT_THAT(check({{"security.protocol", "SSL"}, {"ssl.ca.location", "/no/such/file"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ssl.ca.location")));
}

}  // namespace
}  // namespace muster::kafka
