#include "collectives/internal/guest.h"

#include <gmock/gmock.h>

#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using testing::FakeMember;
using GuestTest = testing::FakePeerTest;

TEST_F(GuestTest, StrangersAreDropped) {
  FakeMember garbage = Connect(), other = Connect();
  garbage.SendBytes(std::string(200, 'x'));
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(garbage.Receive(&header, &payload));
  other.Send({.kind = FrameKind::kHello}, "\xff\xff");
  EXPECT_FALSE(other.Receive(&header, &payload));
  EXPECT_EQ(group_.suspects(1).size(), 0u);
}

}  // namespace
}  // namespace muster::collectives
