#include "collectives/internal/state_session.h"

#include <gmock/gmock.h>

#include "collectives/internal/streams.h"
#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using testing::FakeMember;
using testing::Group;
using ::testing::IsEmpty;

/// Has ten bytes of every sum, but more of bucket 1 than a socket holds; and no stripe.
class TenBytes : public StateProvider {
 public:
  static constexpr size_t kMany = 12u << 20;
  absl::StatusOr<LentBytes> Stripe(StateLabel /*label*/, uint32_t /*stripe*/) override {
    return absl::NotFoundError("no stripe");
  }
  absl::StatusOr<LentBytes> KeptSum(LineageNumber /*lineage*/, StepNumber /*step*/,
                                    uint32_t bucket) override {
    static const std::string bytes = "0123456789", many(kMany, 'x');
    return LentBytes{nullptr, std::as_bytes(std::span(bucket == 1 ? many : bytes))};
  }
};

class StateSessionTest : public ::testing::Test {
 protected:
  StateSessionTest()
      : group_(1, [this](uint32_t, ListenerOptions* options) { options->provider = &provider_; }),
        learner_(FakeMember::ConnectTo(group_.members()[0].addresses[0])) {
    EXPECT_THAT(learner_
                    .SayHello({.job_id = "id-1",
                               .worker = "learner",
                               .to_worker = "worker-0",
                               .to_incarnation = 100})
                    .refused,
                IsEmpty());
  }
  void Fetch(const FetchRequest& request) {
    learner_.Send({.kind = FrameKind::kFetch}, EncodeMessage(request));
  }

  TenBytes provider_;
  Group group_;
  FakeMember learner_;
  FrameHeader header_;
  std::string payload_;
};

TEST_F(StateSessionTest, RequestsAreAnsweredInTheirOrder) {
  learner_.Send({.kind = FrameKind::kBegin});
  Fetch({.kept_sum = true, .bytes = 10});
  Fetch({.kept_sum = false, .bytes = 10});
  Fetch({.kept_sum = true, .bytes = 10});
  ASSERT_TRUE(learner_.Receive(&header_, &payload_));
  EXPECT_EQ(payload_, "0123456789");
  ASSERT_TRUE(learner_.Receive(&header_, &payload_));
  EXPECT_EQ(header_.kind, FrameKind::kNotFetched);
  EXPECT_TRUE(DecodeMessage<FetchError>(payload_)->not_found);
  ASSERT_TRUE(learner_.Receive(&header_, &payload_));
  EXPECT_EQ(header_.kind, FrameKind::kFetched);
}

TEST_F(StateSessionTest, ARequestWaitsForTheAnswerToTheOneBefore) {
  const FetchRequest large{.kept_sum = true, .number = 1, .bytes = TenBytes::kMany};
  const std::string request = internal::EncodeFrame(FrameKind::kFetch, EncodeMessage(large));
  learner_.SendBytes(request + request);
  for (int answer = 0; answer < 2; ++answer) {
    ASSERT_TRUE(learner_.Receive(&header_, &payload_));
    EXPECT_EQ(payload_.size(), TenBytes::kMany);
  }
}

TEST_F(StateSessionTest, ARangeThatOverflowsIsRefused) {
  Fetch({.kept_sum = true, .offset = ~uint64_t{0} - 4, .bytes = 10});
  ASSERT_TRUE(learner_.Receive(&header_, &payload_));
  EXPECT_EQ(header_.kind, FrameKind::kNotFetched);
  EXPECT_FALSE(DecodeMessage<FetchError>(payload_)->not_found);
}

TEST_F(StateSessionTest, GarbageEndsIt) {
  learner_.Send({.kind = FrameKind::kFetch}, "\xff\xff");
  EXPECT_FALSE(learner_.Receive(&header_, &payload_));
}

TEST_F(StateSessionTest, ALearnerSendsNoChunks) {
  learner_.Send({.kind = FrameKind::kChunk, .elements = 1}, "1234");
  EXPECT_FALSE(learner_.Receive(&header_, &payload_));
}

TEST_F(StateSessionTest, RangesEndWhereTheStripeEnds) {
  struct Case {
    uint64_t offset, bytes;
    bool there;
  };
  // Of sums, all is fetched at once.
  for (const Case& of : {Case{0, 10, true}, {0, 9, false}, {1, 9, false}, {0, 11, false}}) {
    Fetch({.kept_sum = true, .offset = of.offset, .bytes = of.bytes});
    ASSERT_TRUE(learner_.Receive(&header_, &payload_));
    EXPECT_EQ(header_.kind == FrameKind::kFetched, of.there) << of.offset << " " << of.bytes;
  }
}

TEST_F(StateSessionTest, ErrorsAreAnsweredToTheRequestThatMadeThem) {
  const std::string wrong =
      internal::EncodeFrame(FrameKind::kFetch, EncodeMessage(FetchRequest{.bytes = 1}));
  const std::string right = internal::EncodeFrame(
      FrameKind::kFetch, EncodeMessage(FetchRequest{.kept_sum = true, .bytes = 10}));
  learner_.SendBytes(wrong + right + wrong + right);
  for (const FrameKind kind :
       {FrameKind::kNotFetched, FrameKind::kFetched, FrameKind::kNotFetched, FrameKind::kFetched}) {
    ASSERT_TRUE(learner_.Receive(&header_, &payload_));
    EXPECT_EQ(header_.kind, kind);
  }
}

TEST(StateSessionEndTest, ALearnerThatGoesInTheMiddleFreesItsPlace) {
  TenBytes provider;
  Group group(1, [&](uint32_t, ListenerOptions* options) {
    options->provider = &provider;
    options->strangers_max = 1;
  });
  const Hello hello{
      .job_id = "id-1", .worker = "learner", .to_worker = "worker-0", .to_incarnation = 100};
  const FetchRequest large{.kept_sum = true, .number = 1, .bytes = TenBytes::kMany};
  for (int i = 0; i < 3; ++i) {
    bool served = false;
    while (!served) {  // until the end of the one before was noticed
      FakeMember learner = FakeMember::ConnectTo(group.members()[0].addresses[0]);
      learner.Send({.kind = FrameKind::kHello}, EncodeMessage(hello));
      FrameHeader header;
      std::string payload;
      if (!learner.Receive(&header, &payload)) continue;
      EXPECT_EQ(header.kind, FrameKind::kHelloReply);
      learner.Send({.kind = FrameKind::kFetch}, EncodeMessage(large));
      served = true;  // and it goes without reading
    }
  }
}

}  // namespace
}  // namespace muster::collectives
