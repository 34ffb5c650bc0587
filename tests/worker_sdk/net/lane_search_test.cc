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

}  // namespace
}  // namespace muster::sdk
