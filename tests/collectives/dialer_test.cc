#include "collectives/internal/dialer.h"

#include <gmock/gmock.h>

#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using testing::FakeMember;
using testing::Group;
using ::testing::HasSubstr;

TEST(DialerTest, AMemberThatClosesAfterItsHelloIsSuspectedWithItsAddress) {
  Group group(2);
  const muster::testing::TempDir dir;
  const OwnedFd listener = FakeMember::ListenAt(dir.File("fake"));
  group.members()[1].addresses = {"unix:" + dir.File("fake")};
  group.Start(0, 1);
  {
    FakeMember member = FakeMember::AcceptFrom(listener);
    FrameHeader header;
    std::string payload;
    ASSERT_TRUE(member.Receive(&header, &payload));
    EXPECT_EQ(DecodeHelloMessage(payload)->to_worker, "worker-1");
    member.Send({.kind = FrameKind::kHelloReply}, EncodeMessage(HelloReply{}));
    ASSERT_TRUE(member.Receive(&header, &payload));
    EXPECT_EQ(header.kind, FrameKind::kBegin);
  }
  EXPECT_THAT(group.suspects(0).Await(1)[0].text,
              HasSubstr("unix:" + dir.File("fake") + ": End of file"));
}

TEST(DialerTest, AMemberThatClosesBeforeItsHelloIsTriedAgain) {
  Group group(2);
  const muster::testing::TempDir dir;
  const OwnedFd listener = FakeMember::ListenAt(dir.File("fake"));
  group.members()[1].addresses = {"unix:" + dir.File("fake")};
  group.Start(0, 1);
  {
    const FakeMember member = FakeMember::AcceptFrom(listener);
  }
  FakeMember member = FakeMember::AcceptFrom(listener);
  FrameHeader header;
  std::string payload;
  EXPECT_TRUE(member.Receive(&header, &payload));
  EXPECT_EQ(group.suspects(0).size(), 0u);
}

}  // namespace
}  // namespace muster::collectives
