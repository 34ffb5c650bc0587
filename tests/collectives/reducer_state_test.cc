#include "collectives/internal/reducer_state.h"

#include <gmock/gmock.h>

#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using testing::Bucket;
using testing::FakeMember;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ReducerStateTest = testing::FakePeerTest;

TEST_F(ReducerStateTest, AConnectionThatBreaksIsSuspected) {
  {
    const FakeMember member = Greeted();
  }
  const SuspectedMember suspect = group_.suspects(1).Await(1)[0];
  EXPECT_EQ(suspect.worker, "worker-0");
  EXPECT_EQ(suspect.incarnation, 100u);
  EXPECT_THAT(suspect.text, HasSubstr("End of file"));
}

TEST_F(ReducerStateTest, AMemberThatBreaksInTheMiddleOfAChunkLeavesTheSumPending) {
  Bucket<float> bucket(2);
  bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  {
    FakeMember member = Greeted();
    std::string header(kFrameHeaderBytes, 0);
    FrameHeader chunk = Chunk();
    chunk.payload_bytes = 8;
    EncodeFrameHeader(chunk,
                      HeaderBytes(reinterpret_cast<std::byte*>(header.data()), kFrameHeaderBytes));
    member.SendBytes(header + "half");
  }
  EXPECT_THAT(Suspicion(), HasSubstr("a connection that it made: "));
  EXPECT_EQ(bucket.answers.size(), 0u);
  group_.Stop(1);
  EXPECT_EQ(bucket.answers.Await(1)[0].status.code(), absl::StatusCode::kAborted);
}

TEST_F(ReducerStateTest, AMemberThatLeavesIsNotSuspected) {
  FakeMember member = Greeted();
  member.Send({.kind = FrameKind::kLeave});
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(member.Receive(&header, &payload)) << "it closes, too";
  EXPECT_EQ(group_.suspects(1).size(), 0u);
}

TEST_F(ReducerStateTest, AnAbortTellsThatItIsNoError) {
  FakeMember member = Greeted();
  Bucket<float> bucket(2);
  bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  member.Send(Chunk(), "12345678");
  FrameHeader header;
  std::string payload;
  ASSERT_TRUE(member.Receive(&header, &payload));
  EXPECT_EQ(header.kind, FrameKind::kChunk);
  bucket.answers.Await(1);  // so nothing is being sent
  group_.Stop(1);
  ASSERT_TRUE(member.Receive(&header, &payload));
  EXPECT_EQ(header.kind, FrameKind::kLeave);
  EXPECT_FALSE(member.Receive(&header, &payload));
}

TEST_F(ReducerStateTest, AConnectionThatHasNotBegunMayBeGivenUp) {
  {
    FakeMember member = Connect();
    EXPECT_THAT(member.SayHello(hello_).refused, IsEmpty());
  }
  FakeMember member = Greeted();
  Bucket<float> bucket(2);
  bucket.in = {1, 2};
  bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  member.Send(Chunk(), std::string(8, '\0'));
  EXPECT_TRUE(bucket.answers.Await(1)[0].status.ok());
  EXPECT_EQ(bucket.out, bucket.in);
  EXPECT_EQ(group_.suspects(1).size(), 0u);
}

TEST_F(ReducerStateTest, AChunkOfAnotherAttemptEndsTheConnection) {
  FakeMember member = Greeted();
  FrameHeader chunk = Chunk();
  chunk.attempt = AttemptNumber(4);
  member.Send(chunk, "12345678");
  EXPECT_THAT(Suspicion(), HasSubstr("a chunk of lineage 1, attempt 4 in a connection of 1, 5"));
}

TEST_F(ReducerStateTest, AChunkThatDoesNotFitEndsTheConnection) {
  Bucket<float> bucket(3);
  bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  FakeMember member = Greeted();
  member.Send(Chunk(), "12345678");
  EXPECT_THAT(Suspicion(),
              HasSubstr("its bucket 0 has 2 elements of 4 bytes, that of this member 3 of 4"));
  group_.Stop(1);
}

TEST_F(ReducerStateTest, GarbageEndsTheConnection) {
  FakeMember member = Greeted();
  member.SendBytes(std::string(kFrameHeaderBytes, 'x'));
  EXPECT_THAT(Suspicion(), HasSubstr("malformed frame"));
}

TEST_F(ReducerStateTest, ASecondConnectionIsRefused) {
  FakeMember member = Greeted();
  // It stands when its chunk has come.
  Bucket<float> bucket(2);
  member.Send(Chunk(), "12345678");
  bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  bucket.answers.Await(1);
  EXPECT_THAT(Connect().SayHello(hello_).refused, HasSubstr("rank 0 was connected before"));
}

TEST_F(ReducerStateTest, EveryLieAboutAChunkEndsTheConnection) {
  struct Lie {
    std::function<void(FrameHeader*)> change;
    size_t bytes;
    const char* text;
  };
  const std::vector<Lie> lies = {
      {[](FrameHeader* chunk) { chunk->lineage = LineageNumber(2); }, 8, "a chunk of lineage 2"},
      {[](FrameHeader* chunk) { chunk->chunk = 1; }, 8, "it sent chunk 1 of bucket 0 instead of 0"},
      {[](FrameHeader* chunk) {
         chunk->type = SumType::kBfloat16;
         chunk->elements = 4;
       },
       8, "has 4 elements of 2 bytes, that of this member 2 of 4"},
      {[](FrameHeader*) {}, 4, "has 4 bytes instead of 8"},
      {[](FrameHeader* chunk) { chunk->kind = FrameKind::kFetched; }, 8, "only chunks"}};
  for (size_t i = 0; i < lies.size(); ++i) {
    hello_.attempt = AttemptNumber(10 + i);
    group_.Start(1, 10 + i);
    Bucket<float> bucket(2);
    bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
    FakeMember member = Greeted();
    FrameHeader chunk = Chunk();
    chunk.attempt = hello_.attempt;
    lies[i].change(&chunk);
    member.Send(chunk, std::string(lies[i].bytes, '1'));
    EXPECT_THAT(group_.suspects(1).Await(i + 1)[i].text, HasSubstr(lies[i].text)) << i;
    EXPECT_EQ(bucket.answers.size(), 0u) << "the sum stays pending";
    group_.Stop(1);
    EXPECT_TRUE(absl::IsAborted(bucket.answers.Await(1)[0].status));
  }
}

TEST_F(ReducerStateTest, AChunkThatIsNotAwaitedWaitsForItsSum) {
  FakeMember member = Greeted();
  Bucket<float> first(2), second(2);
  first.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  member.Send(Chunk(), "12345678");
  first.answers.Await(1);
  // The sum has ended: the chunk waits for another one of that number.
  member.Send(Chunk(), "12345678");
  second.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  second.answers.Await(1);
  EXPECT_EQ(group_.suspects(1).size(), 0u);
}

TEST_F(ReducerStateTest, AMemberThatSaysHelloAndNeverBeginsIsSuspected) {
  hello_.attempt = AttemptNumber(6);
  FakeMember older = Connect();
  older.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  FakeMember newer = Connect();
  newer.Send({.kind = FrameKind::kHello}, EncodeMessage(hello_));
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(older.Receive(&header, &payload)) << "so the newer one waits for the attempt";
  group_.Start(1, 6, [](ReducerOptions* options) {
    options->connect_timeout = std::chrono::milliseconds(30);
  });
  ASSERT_TRUE(newer.Receive(&header, &payload));
  EXPECT_THAT(DecodeMessage<HelloReply>(payload)->refused, ::testing::IsEmpty());
  EXPECT_THAT(Suspicion(), HasSubstr("it has not connected within 30 ms"));
}

}  // namespace
}  // namespace muster::collectives
