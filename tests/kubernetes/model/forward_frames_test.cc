#include "kubernetes/model/forward_frames.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using FrameKind = ForwardFrame::Kind;

std::string Message(char channel, const std::string& bytes) {
  return std::string(1, channel) + bytes;
}

TEST(ForwardFrames, EachChannelBeginsWithThePort) {
  ForwardFrames frames;
  EXPECT_EQ(frames.Read(Message(0, "\x01\x1c"))->kind, FrameKind::kNothing);
  EXPECT_EQ(frames.Read(Message(1, "\x01\x1c"))->kind, FrameKind::kNothing);
  const std::string data = Message(0, "abc");
  EXPECT_EQ(frames.Read(data)->kind, FrameKind::kData);
  EXPECT_EQ(frames.Read(data)->bytes, "abc");
  const std::string error = Message(1, "refused");
  EXPECT_EQ(frames.Read(error)->kind, FrameKind::kError);
  EXPECT_EQ(frames.Read(error)->bytes, "refused");
}

TEST(ForwardFrames, ThePortMayComeInPiecesOrWithData) {
  ForwardFrames frames;
  EXPECT_EQ(frames.Read(Message(0, "\x01"))->kind, FrameKind::kNothing);
  const std::string rest = Message(0,
                                   "\x1c"
                                   "abc");
  EXPECT_EQ(frames.Read(rest)->bytes, "abc");
}

TEST(ForwardFrames, EmptyMessagesSayNothing) {
  ForwardFrames frames;
  EXPECT_EQ(frames.Read("")->kind, FrameKind::kNothing);
  EXPECT_EQ(frames.Read(Message(0, ""))->kind, FrameKind::kNothing);
}

TEST(ForwardFrames, ForeignChannels) {
  ForwardFrames frames;
  EXPECT_THAT(frames.Read(Message(2, "x")),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
}

TEST(ForwardFrames, OurMessagesHaveNoPort) {
  EXPECT_EQ(DataFrame("abc"), Message(0, "abc"));
}

}  // namespace
}  // namespace muster::kubernetes
