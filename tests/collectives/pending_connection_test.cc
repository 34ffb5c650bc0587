#include "collectives/internal/pending_connection.h"

#include <gmock/gmock.h>

#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using testing::FakeMember;
using PendingConnectionTest = testing::FakePeerTest;

TEST_F(PendingConnectionTest, StrangersAreDropped) {
  FakeMember garbage = Connect(), other = Connect();
  garbage.SendBytes(std::string(200, 'x'));
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(garbage.Receive(&header, &payload));
  other.Send({.kind = FrameKind::kHello}, "\xff\xff");
  EXPECT_FALSE(other.Receive(&header, &payload));
  EXPECT_EQ(group_.suspects(1).size(), 0u);
}

TEST(SilentGuestTest, ItsPlaceIsFreeAfterTheTimeToGreet) {
  testing::Group group(1, [](uint32_t, ListenerOptions* options) {
    options->hello_timeout = std::chrono::milliseconds(20);
    options->strangers_max = 1;
  });
  FakeMember silent = FakeMember::ConnectTo(group.members()[0].addresses[0]);
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(silent.Receive(&header, &payload)) << "closed by the other end";
}

}  // namespace
}  // namespace muster::collectives
