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
    EXPECT_EQ(DecodeMessage<Hello>(payload)->to_worker, "worker-1");
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

/// Rank 0 dials a member that breaks every rule, for at most `timeout_ms`.
class LyingMemberTest : public ::testing::Test {
 protected:
  LyingMemberTest() : group_(2), listener_(FakeMember::ListenAt(path())) {}
  std::string path() { return dir_.File("fake"); }
  void Dial(int timeout_ms, std::vector<std::string> before = {}) {
    before.push_back("unix:" + path());
    group_.members()[1].addresses = std::move(before);
    group_.Start(0, 1, [timeout_ms](ReducerOptions* options) {
      options->connect_timeout = std::chrono::milliseconds(timeout_ms);
    });
  }
  /// The next connection, after its hello.
  FakeMember Greeted() {
    FakeMember member = FakeMember::AcceptFrom(listener_);
    FrameHeader header;
    std::string payload;
    EXPECT_TRUE(member.Receive(&header, &payload));
    EXPECT_EQ(header.kind, FrameKind::kHello);
    return member;
  }
  /// The hello is accepted, and the connection begins.
  void ExpectBegin(FakeMember* member) {
    member->Send({.kind = FrameKind::kHelloReply}, EncodeMessage(HelloReply{}));
    FrameHeader header;
    std::string payload;
    ASSERT_TRUE(member->Receive(&header, &payload));
    EXPECT_EQ(header.kind, FrameKind::kBegin);
    EXPECT_EQ(group_.suspects(0).size(), 0u);
  }
  std::string Suspicion() {
    const std::string text = group_.suspects(0).Await(1)[0].text;
    group_.Stop(0);
    EXPECT_EQ(group_.suspects(0).size(), 1u) << "a member is suspected once";
    return text;
  }

  const muster::testing::TempDir dir_;
  Group group_;
  const OwnedFd listener_;
};

TEST_F(LyingMemberTest, SilenceAfterTheHelloHasALimit) {
  Dial(30);
  EXPECT_THAT(Suspicion(), HasSubstr("unix:" + path() + ": it does not answer, for 30 ms"));
}

TEST_F(LyingMemberTest, ARefusalThatMayPassIsTriedAgain) {
  Dial(60'000);
  for (int i = 0; i < 2; ++i) {
    FakeMember member = Greeted();
    member.Send({.kind = FrameKind::kHelloReply},
                EncodeMessage(HelloReply{.refused = "not yet", .again = true}));
  }
  FakeMember member = Greeted();
  ExpectBegin(&member);
}

TEST_F(LyingMemberTest, ARefusalThatStaysIsTheEnd) {
  Dial(60'000);
  FakeMember member = Greeted();
  member.Send({.kind = FrameKind::kHelloReply}, EncodeMessage(HelloReply{.refused = "never"}));
  EXPECT_EQ(Suspicion(), "unix:" + path() + ": never");
}

TEST_F(LyingMemberTest, AnAnswerThatIsNoneIsTriedAgain) {
  Dial(60'000);
  Greeted().SendBytes(std::string(kFrameHeaderBytes, 'x'));
  Greeted().Send({.kind = FrameKind::kBegin});
  Greeted().Send({.kind = FrameKind::kHelloReply}, "\xff\xff");
  Greeted().SendBytes("half");  // and the end
  FakeMember member = Greeted();
  ExpectBegin(&member);
}

TEST_F(LyingMemberTest, AddressesThatAreOfNoUseArePassedOver) {
  Dial(60'000, {"unix:/nowhere/m1", "nonsense", "127.0.0.1:1"});
  FakeMember member = Greeted();
  ExpectBegin(&member);
}

TEST_F(LyingMemberTest, AnAbortWhileItDialsReportsNothing) {
  Dial(60'000);
  FakeMember member = Greeted();
  group_.Stop(0);
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(member.Receive(&header, &payload)) << "the connection was closed";
  EXPECT_EQ(group_.suspects(0).size(), 0u);
}

}  // namespace
}  // namespace muster::collectives
