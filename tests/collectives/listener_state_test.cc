#include "collectives/internal/listener_state.h"

#include <gmock/gmock.h>

#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using testing::FakeMember;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ListenerStateTest = testing::FakePeerTest;

TEST_F(ListenerStateTest, AGuestOfALaterAttemptWaitsForIt) {
  hello_.attempt = AttemptNumber(6);
  FakeMember member = Connect();
  member.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  group_.Start(1, 6);
  FrameHeader header;
  std::string payload;
  ASSERT_TRUE(member.Receive(&header, &payload));
  EXPECT_EQ(header.kind, FrameKind::kHelloReply);
  EXPECT_THAT(DecodeMessage<HelloReply>(payload)->refused, IsEmpty());
}

TEST_F(ListenerStateTest, ANewerGuestOfAProcessReplacesTheOlder) {
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

TEST_F(ListenerStateTest, AGuestOfASkippedAttemptIsRefused) {
  hello_.attempt = AttemptNumber(6);
  FakeMember member = Connect();
  member.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  group_.Start(1, 7);
  FrameHeader header;
  std::string payload;
  ASSERT_TRUE(member.Receive(&header, &payload));
  EXPECT_THAT(DecodeMessage<HelloReply>(payload)->refused, HasSubstr("has left attempt 6"));
}

class NoState : public StateProvider {
 public:
  absl::StatusOr<LentBytes> Stripe(StateLabel /*label*/, uint32_t /*stripe*/) override {
    return absl::NotFoundError("no stripe");
  }
  absl::StatusOr<LentBytes> KeptSum(LineageNumber /*lineage*/, StepNumber /*step*/,
                                    uint32_t /*bucket*/) override {
    return absl::NotFoundError("no sum");
  }
};

TEST(HubStrangersTest, LearnersThatAreServedCountToo) {
  NoState provider;
  testing::Group group(1, [&](uint32_t, ListenerOptions* options) {
    options->strangers_max = 2;
    options->provider = &provider;
  });
  const std::string& address = group.members()[0].addresses[0];
  const Hello hello{
      .job_id = "id-1", .worker = "learner", .to_worker = "worker-0", .to_incarnation = 100};
  FakeMember first = FakeMember::ConnectTo(address), second = FakeMember::ConnectTo(address);
  for (FakeMember* learner : {&first, &second}) {
    EXPECT_THAT(learner->SayHello(hello).refused, IsEmpty());
  }
  FakeMember third = FakeMember::ConnectTo(address);
  third.Send({.kind = FrameKind::kHello}, EncodeMessage(hello));
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(third.Receive(&header, &payload)) << "it is dropped, and tries again";
}

// A thread that a hung backend keeps may call long after the listener.
TEST(ListenerStateEndTest, ATaskAfterTheEndIsDropped) {
  const auto state = std::make_shared<internal::ListenerState>(ListenerOptions{.host = ""});
  ASSERT_THAT(state->Start(), IsOk());
  const auto held = std::make_shared<bool>();
  state->Post([held] { *held = true; });
  state->Stop();
  EXPECT_TRUE(*held) << "what was posted before the end has run";
  state->Post([state, held] { *held = false; });
  EXPECT_EQ(held.use_count(), 1) << "the state and its task would hold each other";
}

}  // namespace
}  // namespace muster::collectives
