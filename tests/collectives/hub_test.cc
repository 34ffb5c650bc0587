#include "collectives/internal/hub.h"

#include <gmock/gmock.h>

#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using testing::FakeMember;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using HubTest = testing::FakePeerTest;

TEST_F(HubTest, AGuestOfALaterAttemptWaitsForIt) {
  hello_.attempt = AttemptNumber(6);
  FakeMember member = Connect();
  member.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  group_.Start(1, 6);
  FrameHeader header;
  std::string payload;
  ASSERT_TRUE(member.Receive(&header, &payload));
  EXPECT_EQ(header.kind, FrameKind::kHelloReply);
  EXPECT_THAT(DecodeHelloReplyMessage(payload)->refused, IsEmpty());
}

TEST_F(HubTest, ANewerGuestOfAProcessReplacesTheOlder) {
  hello_.attempt = AttemptNumber(6);
  FakeMember older = Connect();
  older.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  FakeMember newer = Connect();
  newer.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(older.Receive(&header, &payload));
  group_.Start(1, 6);
  EXPECT_TRUE(newer.Receive(&header, &payload));
}

TEST_F(HubTest, AGuestOfASkippedAttemptIsRefused) {
  hello_.attempt = AttemptNumber(6);
  FakeMember member = Connect();
  member.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  group_.Start(1, 7);
  FrameHeader header;
  std::string payload;
  ASSERT_TRUE(member.Receive(&header, &payload));
  EXPECT_THAT(DecodeHelloReplyMessage(payload)->refused, HasSubstr("has left attempt 6"));
}

}  // namespace
}  // namespace muster::collectives
