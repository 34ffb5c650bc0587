#include <gmock/gmock.h>

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

TEST_F(LaneSearchTest, AddressesOfNoUseAreSaid) {
  Start();
  client_->SetServers(Servers({"nonsense", "unix:" + std::string(500, 'x')}));
  client_->Send({Request(1, true)});
  EXPECT_THAT(collector_.Wait(1).why, ::testing::HasSubstr("no address that can be used"));
}

}  // namespace
}  // namespace muster::sdk
