#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/net/link_fixture.h"

namespace muster::sdk {
namespace {

using LaneSearchTest = ClientFixture;

TEST_F(LaneSearchTest, FallsBackToTcpWhereTheUnixPathIsNot) {
  FakeDataServer server({});
  Start();
  client_->SetServers(Servers({"unix:/nowhere/at/all", server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_EQ(collector_.Wait(1).why, "");
}

TEST_F(LaneSearchTest, AnotherServerAtTheUnixPathIsMetOnce) {
  muster::testing::TempDir dir;
  FakeDataServer other({.incarnation = 2, .unix_path = dir.File("lane")});
  FakeDataServer server({});
  Start();
  client_->SetServers(Servers({other.address(), server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, ::testing::HasSubstr("incarnation is 2"));
  client_->Send({Request(2, true)});
  EXPECT_EQ(collector_.Wait(2).why, "");
  EXPECT_EQ(other.parts_applied(), 0);
  EXPECT_EQ(other.connections(), 1);
}

TEST_F(LaneSearchTest, AnotherUsersProcessAtTheUnixPathIsPassedOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  muster::testing::TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(65'534), 0);
  std::optional<FakeDataServer> other(FakeDataServer::Options{.unix_path = dir.File("lane")});
  ASSERT_EQ(::seteuid(0), 0);
  FakeDataServer server({});
  Start();
  client_->SetServers(Servers({other->address(), server.address()}));
  client_->Send({Request(1, true)});
  EXPECT_EQ(collector_.Wait(1).why, "");
  EXPECT_EQ(other->parts_applied(), 0);
  EXPECT_EQ(server.parts_applied(), static_cast<int>(kPartitions));
}

TEST_F(LaneSearchTest, AddressesOfNoUseAreSaid) {
  Start();
  client_->SetServers(Servers({"nonsense", "unix:" + std::string(500, 'x')}));
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, ::testing::HasSubstr("no address that can be used"));
}

}  // namespace
}  // namespace muster::sdk
