#include "collectives/state_client.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <functional>

#include "collectives/internal/streams.h"
#include "collectives/state_provider.h"
#include "tests/collectives/fake_member.h"
#include "tests/collectives/group_fixture.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using testing::Group;
using ::testing::HasSubstr;
using testing::Reports;

const StateLabel kLabel{LineageNumber(2), StepNumber(40)};

/// Holds stripe 1 of kLabel, which is larger than the buffer of a socket, and the sum of bucket 3
/// of step 41.
class Provider : public StateProvider {
 public:
  Provider() : stripe_(std::make_shared<std::string>(12u << 20, 0)) {
    for (size_t i = 0; i < stripe_->size(); ++i)
      (*stripe_)[i] = static_cast<char>(i * 31 + i / 999);
  }
  absl::StatusOr<LentBytes> Stripe(StateLabel label, uint32_t stripe) override {
    if (label != kLabel || stripe != 1) return absl::NotFoundError("there is no such stripe");
    return LentBytes{stripe_, std::as_bytes(std::span(*stripe_))};
  }
  absl::StatusOr<LentBytes> KeptSum(LineageNumber lineage, StepNumber step,
                                    uint32_t bucket) override {
    if (step == StepNumber(43)) return absl::FailedPreconditionError("it is not there yet");
    if (lineage != LineageNumber(2) || step != StepNumber(41) || bucket != 3) {
      return absl::NotFoundError("there is no such sum");
    }
    return LentBytes{stripe_, std::as_bytes(std::span(*stripe_)).first(100)};
  }
  const std::string& stripe() const { return *stripe_; }

 private:
  const std::shared_ptr<std::string> stripe_;
};

class StateClientTest : public ::testing::Test {
 protected:
  StateClientTest()
      : group_(2, [this](uint32_t rank, ListenerOptions* options) {
          if (rank == 1) options->provider = &provider_;
        }) {}
  std::unique_ptr<StateClient> Start() {
    return StateClient::Start({.holder = group_.members()[1],
                               .connect_timeout = std::chrono::milliseconds(timeout_ms_),
                               .listener = group_.listener(0)});
  }
  StateClient::Done Into() {
    return [this](absl::Status status) { answers_.Put(status); };
  }
  static std::span<std::byte> To(std::string* text) {
    return std::as_writable_bytes(std::span(*text));
  }

  Provider provider_;
  Group group_;
  int timeout_ms_ = 60'000;
  Reports<absl::Status> answers_;
};

TEST_F(StateClientTest, StripesAndSumsAreFetched) {
  const auto client = Start();
  std::string whole(provider_.stripe().size(), 0), part(1000, 0), sum(100, 0);
  client->FetchStripe(kLabel, 1, 0, To(&whole), Into());
  client->FetchStripe(kLabel, 1, 12'345, To(&part), Into());
  client->FetchSum(LineageNumber(2), StepNumber(41), 3, To(&sum), Into());
  for (const absl::Status& status : answers_.Await(3)) EXPECT_THAT(status, IsOk());
  EXPECT_TRUE(whole == provider_.stripe());
  EXPECT_EQ(part, provider_.stripe().substr(12'345, 1000));
  EXPECT_EQ(sum, provider_.stripe().substr(0, 100));
}

TEST_F(StateClientTest, WhatIsNotHeldIsSaid) {
  const auto client = Start();
  std::string into(100, 0);
  client->FetchStripe(kLabel, 2, 0, To(&into), Into());
  client->FetchSum(LineageNumber(2), StepNumber(42), 3, To(&into), Into());
  client->FetchStripe(kLabel, 1, provider_.stripe().size() - 99, To(&into), Into());
  into.resize(99);
  client->FetchSum(LineageNumber(2), StepNumber(41), 3, To(&into), Into());
  client->FetchStripe(kLabel, 1, 0, To(&into), Into());
  client->FetchSum(LineageNumber(2), StepNumber(43), 3, To(&into), Into());
  const auto answers = answers_.Await(6);
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker-1 at unix:")));
  EXPECT_THAT(answers[1], StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such sum")));
  EXPECT_THAT(answers[2],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("were asked for")));
  EXPECT_THAT(answers[3], StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(answers[4], IsOk());
  EXPECT_THAT(answers[5],
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not there yet")));
}

TEST_F(StateClientTest, EveryPartOfALargePieceCountsAsMoved) {
  const auto client = Start();
  std::string whole(provider_.stripe().size(), 0);
  const uint64_t before = group_.listener(0)->moved();
  client->FetchStripe(kLabel, 1, 0, To(&whole), Into());
  EXPECT_THAT(answers_.Await(1)[0], IsOk());
  EXPECT_EQ(group_.listener(0)->moved() - before, 3u) << "12 MiB";
}

TEST_F(StateClientTest, AnAbortAnswersAtOnce) {
  const auto client = Start();
  std::string whole(provider_.stripe().size(), 0);
  client->Abort();
  client->FetchStripe(kLabel, 1, 0, To(&whole), Into());
  EXPECT_THAT(answers_.Await(1)[0], StatusIs(absl::StatusCode::kAborted, ::testing::_));
}

TEST_F(StateClientTest, TheEndOfAClientInTheMiddleTouchesNothingMore) {
  for (int i = 0; i < 10; ++i) {
    auto client = Start();
    std::string one(10, 0), whole(provider_.stripe().size(), 0);
    client->FetchStripe(kLabel, 1, 0, To(&one), Into());
    client->FetchStripe(kLabel, 1, 0, To(&whole), Into());
    if (i % 2 == 0) answers_.Await(static_cast<size_t>(2 * i + 1));
    client = nullptr;
    EXPECT_EQ(answers_.size(), static_cast<size_t>(2 * i + 2));
  }
}

TEST_F(StateClientTest, AHolderThatCannotBeReachedIsNamed) {
  group_.members()[1].addresses = {"unix:/nowhere/m1"};
  timeout_ms_ = 20;
  const auto client = Start();
  std::string into(100, 0);
  client->FetchStripe(kLabel, 1, 0, To(&into), Into());
  EXPECT_THAT(answers_.Await(1)[0],
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker-1: unix:/nowhere/m1")));
}

TEST_F(StateClientTest, AMemberWithoutAProviderRefuses) {
  const auto client =
      StateClient::Start({.holder = group_.members()[0], .listener = group_.listener(1)});
  std::string into(100, 0);
  client->FetchStripe(kLabel, 1, 0, To(&into), Into());
  EXPECT_THAT(answers_.Await(1)[0], StatusIs(absl::StatusCode::kUnavailable,
                                             HasSubstr("worker-0 gives no state to learners")));
}

/// A holder that breaks every rule.
class LyingHolderTest : public StateClientTest {
 protected:
  LyingHolderTest() : listener_(testing::FakeMember::ListenAt(dir_.File("fake"))) {
    group_.members()[1].addresses = {"unix:" + dir_.File("fake")};
  }
  /// The connection of a client, after its hello.
  testing::FakeMember Accepted() {
    testing::FakeMember holder = testing::FakeMember::AcceptFrom(listener_);
    EXPECT_EQ(NextOf(&holder), FrameKind::kHello);
    holder.Send({.kind = FrameKind::kHelloReply}, EncodeMessage(HelloReply{}));
    EXPECT_EQ(NextOf(&holder), FrameKind::kBegin);
    return holder;
  }
  FrameKind NextOf(testing::FakeMember* holder) {
    FrameHeader header;
    std::string payload;
    EXPECT_TRUE(holder->Receive(&header, &payload));
    return header.kind;
  }
  /// Two fetches of ten bytes, to which the holder does `lie`; the reason of both, and of a later
  /// one.
  std::string ReasonOf(const std::function<void(testing::FakeMember*)>& lie) {
    const auto client = Start();
    std::string first(10, '-'), second(10, '-'), later(10, '-');
    const size_t before = answers_.size();
    client->FetchStripe(kLabel, 1, 0, To(&first), Into());
    client->FetchStripe(kLabel, 2, 0, To(&second), Into());
    testing::FakeMember holder = Accepted();
    EXPECT_EQ(NextOf(&holder), FrameKind::kFetch);
    lie(&holder);
    answers_.Await(before + 2);
    client->FetchStripe(kLabel, 3, 0, To(&later), Into());
    const std::vector<absl::Status> answers = answers_.Await(before + 3);
    for (size_t i = before; i < answers.size(); ++i) {
      EXPECT_THAT(answers[i], StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("worker-1 at unix:" + dir_.File("fake"))));
      EXPECT_EQ(answers[i], answers[before]) << "the first reason stays";
    }
    EXPECT_EQ(second + later, std::string(20, '-')) << "what is not answered stays as it is";
    return std::string(answers[before].message());
  }

  const muster::testing::TempDir dir_;
  const OwnedFd listener_;
};

TEST_F(LyingHolderTest, AnAnswerOfAnotherSizeEndsTheClient) {
  EXPECT_THAT(
      ReasonOf([](auto* holder) { holder->Send({.kind = FrameKind::kFetched}, "nine bits"); }),
      HasSubstr("it sent 9 bytes instead of 10"));
  EXPECT_THAT(
      ReasonOf([](auto* holder) { holder->Send({.kind = FrameKind::kFetched}, "eleven bits"); }),
      HasSubstr("it sent 11 bytes instead of 10"));
}

TEST_F(LyingHolderTest, SomethingElseThanAnAnswerEndsTheClient) {
  EXPECT_THAT(
      ReasonOf([](auto* holder) { holder->Send({.kind = FrameKind::kFetch}, "ten bytes!"); }),
      HasSubstr("something else than an answer"));
  EXPECT_THAT(
      ReasonOf([](auto* holder) { holder->Send({.kind = FrameKind::kNotFetched}, "\xff\xff"); }),
      HasSubstr("malformed answer to a fetch"));
  EXPECT_THAT(ReasonOf([](auto* holder) { holder->SendBytes(std::string(100, 'x')); }),
              HasSubstr("malformed frame"));
}

TEST_F(LyingHolderTest, HalfAnAnswerIsNone) {
  EXPECT_THAT(ReasonOf([](auto* holder) {
                const std::string whole = internal::EncodeFrame(FrameKind::kFetched, "0123456789");
                holder->SendBytes(std::string_view(whole).substr(0, whole.size() - 3));
                ::shutdown(holder->fd(), SHUT_RDWR);
              }),
              HasSubstr("End of file"));
}

TEST_F(LyingHolderTest, AnAnswerThatNobodyAskedForEndsTheClient) {
  const auto client = Start();
  testing::FakeMember holder = Accepted();
  holder.Send({.kind = FrameKind::kFetched}, "0123456789");
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(holder.Receive(&header, &payload)) << "the client has closed";
  std::string into(10, '-');
  client->FetchStripe(kLabel, 1, 0, To(&into), Into());
  EXPECT_THAT(answers_.Await(1)[0], StatusIs(absl::StatusCode::kUnavailable,
                                             HasSubstr("it answered what was not asked")));
}

TEST_F(LyingHolderTest, AHolderThatKeepsSilentIsGivenUpByAnAbort) {
  const auto client = Start();
  std::string into(10, '-');
  client->FetchStripe(kLabel, 1, 0, To(&into), Into());
  testing::FakeMember holder = Accepted();
  EXPECT_EQ(NextOf(&holder), FrameKind::kFetch);
  client->Abort();
  EXPECT_THAT(answers_.Await(1)[0], StatusIs(absl::StatusCode::kAborted, ::testing::_));
  holder.Send({.kind = FrameKind::kFetched}, "0123456789");
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(holder.Receive(&header, &payload));
  EXPECT_EQ(into, std::string(10, '-')) << "an answer that comes after the end";
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(LyingHolderTest, OneErrorLeavesTheOtherFetches) {
  const auto client = Start();
  std::string first(10, '-'), second(10, '-');
  client->FetchStripe(kLabel, 1, 0, To(&first), Into());
  client->FetchStripe(kLabel, 2, 0, To(&second), Into());
  testing::FakeMember holder = Accepted();
  holder.Send({.kind = FrameKind::kNotFetched},
              EncodeMessage(FetchError{.not_found = true, .text = "gone\x01"}));
  holder.Send({.kind = FrameKind::kFetched}, "0123456789");
  const std::vector<absl::Status> answers = answers_.Await(2);
  EXPECT_THAT(answers[0], StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone")));
  EXPECT_EQ(answers[0].message().find('\x01'), std::string::npos);
  EXPECT_THAT(answers[1], IsOk());
  EXPECT_EQ(second, "0123456789");
}

}  // namespace
}  // namespace muster::collectives
