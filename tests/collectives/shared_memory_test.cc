// Members of one machine exchange data through shared memory: who offers it to whom, what happens
// if it is of no use, and what a death does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "base/failpoint.h"
#include "net/ring_budget.h"
#include "net/ring_memory.h"
#include "tests/collectives/fake_peer_fixture.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using testing::Bucket;
using testing::FakeMember;
using testing::Group;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kRing = net::RingBudget::kRingBytesMin;

/// Waits until the descriptor has come, and maps it.
net::RingMemory OpenRingsOf(const FakeMember& member, size_t ring_bytes) {
  absl::StatusOr<OwnedFd> received = net::ReceiveDescriptor(member.fd());
  while (absl::IsUnavailable(received.status())) received = net::ReceiveDescriptor(member.fd());
  return net::RingMemory::Open(*std::move(received), ring_bytes).value();
}

/// Writes a frame, without a doorbell: the member looks for it when it is rung.
void WriteFrame(net::RingWriter* writer, FrameHeader header, std::span<const std::byte> payload) {
  header.payload_bytes = payload.size();
  const std::span<std::byte> room = writer->Room().value();
  EncodeFrameHeader(header, room.first<kFrameHeaderBytes>());
  std::ranges::copy(payload, room.begin() + kFrameHeaderBytes);
  static_cast<void>(writer->Publish(kFrameHeaderBytes + payload.size()));
}

/// Rank 0 is the test, which has connected and wants shared memory; rank 1 is real.
class SharingPendingConnectionTest : public testing::FakePeerTest {
 protected:
  HelloReply Greet(FakeMember* member, uint32_t ring_bytes_max) {
    hello_.ring_bytes_max = ring_bytes_max;
    return member->SayHello(hello_);
  }
};

TEST_F(SharingPendingConnectionTest, AMemberThatAsksGetsRingsAndIsHeardThroughThem) {
  FakeMember member = Connect();
  const HelloReply reply = Greet(&member, kRing);
  EXPECT_THAT(reply.refused, IsEmpty());
  ASSERT_EQ(reply.ring_bytes, kRing);
  const net::RingMemory memory = OpenRingsOf(member, kRing);
  Bucket<float> bucket(2);
  bucket.in = {1, 2};
  bucket.Sum(&group_.reducer(1), GroupDtype::kFloat32, 1, 0);
  net::RingWriter writer(memory.openers());
  const std::vector<float> own = {10, 20};
  WriteFrame(&writer, {.kind = FrameKind::kBegin}, {});
  WriteFrame(&writer, Chunk(), std::as_bytes(std::span(own)));
  member.SendBytes("!");
  EXPECT_THAT(bucket.answers.Await(1)[0].status, IsOk());
  EXPECT_EQ(bucket.out, (std::vector<float>{11, 22}));
}

TEST_F(SharingPendingConnectionTest, AMemberGetsNoMoreThanItAsksForAndNothingIfItDoesNotAsk) {
  FakeMember without = Connect();
  EXPECT_EQ(Greet(&without, 0).ring_bytes, 0u);
  FakeMember little = Connect();
  EXPECT_EQ(Greet(&little, kRing - 1).ring_bytes, 0u) << "a smaller ring gains nothing";
  FakeMember much = Connect();
  EXPECT_LE(Greet(&much, 1u << 30).ring_bytes, net::RingBudget::kRingBytesMax);
}

TEST_F(SharingPendingConnectionTest, AnEndOfTheSocketIsTheEndOfTheMember) {
  {
    FakeMember member = Connect();
    ASSERT_EQ(Greet(&member, kRing).ring_bytes, kRing);
    const net::RingMemory memory = OpenRingsOf(member, kRing);
    net::RingWriter writer(memory.openers());
    WriteFrame(&writer, {.kind = FrameKind::kBegin}, {});
  }
  EXPECT_THAT(Suspicion(), HasSubstr("End of file"));
}

TEST_F(SharingPendingConnectionTest, AnImpossibleCountInTheMemoryIsTheEndOfTheMember) {
  FakeMember member = Connect();
  ASSERT_EQ(Greet(&member, kRing).ring_bytes, kRing);
  const net::RingMemory memory = OpenRingsOf(member, kRing);
  net::RingWriter writer(memory.openers());
  WriteFrame(&writer, {.kind = FrameKind::kBegin}, {});
  member.SendBytes("!");
  // When it has begun, it says nothing of itself, so its own count stays.
  while (memory.openers().control->read.load() < kFrameHeaderBytes) continue;
  memory.openers().control->written.store(1u << 30);
  member.SendBytes("!");
  EXPECT_THAT(Suspicion(), HasSubstr("the shared ring says"));
}

#if MUSTER_WITH_FAILPOINTS
TEST_F(SharingPendingConnectionTest, WithoutMemoryTheSocketRemains) {
  ASSERT_THAT(ArmFailpoints({.actions = "rings.before-make=full"}), IsOk());
  FakeMember member = Connect();
  const HelloReply reply = Greet(&member, kRing);
  EXPECT_THAT(ArmFailpoints({}), IsOk());
  EXPECT_THAT(reply.refused, IsEmpty());
  EXPECT_EQ(reply.ring_bytes, 0u);
}
#endif

TEST(SharingTest, AMemberThatSharesNothingDoesNotGetMemoryEither) {
  Group group(2, [](uint32_t rank, ListenerOptions* options) {
    if (rank == 0) options->ring_bytes_max = 0;
  });
  group.StartAll(1);
  Bucket<float> zero(100'000), one(100'000);
  std::iota(one.in.begin(), one.in.end(), 0.0f);
  zero.Sum(&group.reducer(0), GroupDtype::kFloat32, 1, 0);
  one.Sum(&group.reducer(1), GroupDtype::kFloat32, 1, 0);
  EXPECT_THAT(zero.answers.Await(1)[0].status, IsOk());
  EXPECT_THAT(one.answers.Await(1)[0].status, IsOk());
  EXPECT_EQ(zero.out, one.in);
}

/// Rank 0 is real and connects; rank 1 is the test.
class SharingDialerTest : public ::testing::Test {
 protected:
  SharingDialerTest() : group_(2), listener_(FakeMember::ListenAt(dir_.File("fake"))) {
    group_.members()[1].addresses = {"unix:" + dir_.File("fake")};
    group_.Start(0, 1);
  }
  /// The next connection, which has said hello.
  FakeMember Next(Hello* hello) {
    FakeMember member = FakeMember::AcceptFrom(listener_);
    FrameHeader header;
    std::string payload;
    MUSTER_CHECK(member.Receive(&header, &payload));
    *hello = DecodeMessage<Hello>(payload).value();
    return member;
  }
  static void Reply(FakeMember* member, uint32_t ring_bytes) {
    member->Send({.kind = FrameKind::kHelloReply},
                 EncodeMessage(HelloReply{.ring_bytes = ring_bytes}));
  }
  /// The next connection asks for no memory, and is used.
  void ExpectASocketNext() {
    Hello hello;
    FakeMember member = Next(&hello);
    EXPECT_EQ(hello.ring_bytes_max, 0u);
    Reply(&member, 0);
    FrameHeader header;
    std::string payload;
    ASSERT_TRUE(member.Receive(&header, &payload));
    EXPECT_EQ(header.kind, FrameKind::kBegin);
    EXPECT_EQ(group_.suspects(0).size(), 0u);
  }

  Group group_;
  muster::testing::TempDir dir_;
  const OwnedFd listener_;
};

TEST_F(SharingDialerTest, MemoryThatIsOfNoUseIsDoneWithout) {
  Hello hello;
  FakeMember member = Next(&hello);
  ASSERT_GE(hello.ring_bytes_max, kRing);
  Reply(&member, kRing);
  const OwnedFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_THAT(net::SendDescriptor(member.fd(), unsealed.get()), IsOk());
  ExpectASocketNext();
}

TEST_F(SharingDialerTest, AMemberThatCannotHandMemoryOverIsConnectedWithout) {
  Hello hello;
  {
    FakeMember member = Next(&hello);
    Reply(&member, kRing);
  }
  ExpectASocketNext();
}

TEST_F(SharingDialerTest, MoreMemoryThanWasAskedForIsRefused) {
  Hello hello;
  FakeMember member = Next(&hello);
  Reply(&member, 2 * hello.ring_bytes_max);
  FrameHeader header;
  std::string payload;
  EXPECT_FALSE(member.Receive(&header, &payload));
}

TEST_F(SharingDialerTest, MemoryIsUsedWhenItHasCome) {
  Hello hello;
  FakeMember member = Next(&hello);
  Reply(&member, kRing);
  net::RingMemory memory = net::RingMemory::Make(kRing).value();
  ASSERT_THAT(net::SendDescriptor(member.fd(), memory.descriptor()), IsOk());
  net::RingReader reader(memory.openers());
  while (reader.Bytes().value().size() < kFrameHeaderBytes) continue;
  const auto begin =
      DecodeFrameHeader(ConstHeaderBytes(reader.Bytes().value().data(), kFrameHeaderBytes));
  EXPECT_EQ(begin->kind, FrameKind::kBegin);
}

/// Rank 1 is another process, which ends after one sum, or is killed.
class KilledMemberTest : public ::testing::TestWithParam<size_t> {
 protected:
  KilledMemberTest() {
    MUSTER_CHECK(::pipe2(ready_.data(), O_CLOEXEC) == 0);
    // Before this process has threads.
    child_ = ::fork();
    if (child_ == 0) Child();
    char byte = 0;
    MUSTER_CHECK(::read(ready_[0], &byte, 1) == 1);
    listener_ = Listener::Start(Listens(0)).value();
    ReducerOptions options = Options(0);
    options.listener = listener_.get();
    reducer_ = Reducer::Start(options, [this](SuspectedMember who) { suspects_.Put(who); });
  }
  ~KilledMemberTest() override {
    reducer_ = nullptr;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    for (const int fd : ready_) ::close(fd);
  }
  ListenerOptions Listens(uint32_t rank) const {
    ListenerOptions options;
    options.job_id = "id-1";
    options.worker = Options(rank).members[rank].worker;
    options.incarnation = 100 + rank;
    options.unix_path = dir_.File("m" + std::to_string(rank));
    options.host = "";
    options.ring_bytes_max = GetParam();
    return options;
  }
  ReducerOptions Options(uint32_t rank) const {
    ReducerOptions options;
    options.attempt = AttemptNumber(1);
    options.rank = rank;
    for (uint32_t i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i);
      options.members.push_back({"worker-" + number, 100 + i, {"unix:" + dir_.File("m" + number)}});
    }
    return options;
  }
  [[noreturn]] void Child() {
    auto listener = Listener::Start(Listens(1)).value();
    ReducerOptions options = Options(1);
    options.listener = listener.get();
    auto reducer = Reducer::Start(options, [](const SuspectedMember&) {});
    MUSTER_CHECK(::write(ready_[1], "", 1) == 1);
    Bucket<float> bucket(kElements);
    bucket.Sum(reducer.get(), GroupDtype::kFloat32, 1, 0);
    static_cast<void>(bucket.answers.Await(1));
    for (;;) ::pause();
  }

  static constexpr size_t kElements = 4'000'000;  // more than rings and sockets hold
  muster::testing::TempDir dir_;
  std::array<int, 2> ready_;
  pid_t child_ = -1;
  testing::Reports<SuspectedMember> suspects_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Reducer> reducer_;
};
INSTANTIATE_TEST_SUITE_P(Rings, KilledMemberTest, ::testing::Values(size_t{0}, size_t{64} << 20));

TEST_P(KilledMemberTest, ADeathInTheMiddleOfASumIsNoticedAndTheSumStaysPending) {
  Bucket<float> first(kElements), second(kElements);
  first.Sum(reducer_.get(), GroupDtype::kFloat32, 1, 0);
  ASSERT_THAT(first.answers.Await(1)[0].status, IsOk());
  second.Sum(reducer_.get(), GroupDtype::kFloat32, 2, 0);
  EXPECT_EQ(suspects_.size(), 0u);
  ::kill(child_, SIGKILL);
  EXPECT_EQ(suspects_.Await(1)[0].worker, "worker-1");
  EXPECT_EQ(second.answers.size(), 0u);
  reducer_->Abort();
  EXPECT_THAT(second.answers.Await(1)[0].status,
              StatusIs(absl::StatusCode::kAborted, HasSubstr("given up")));
}

}  // namespace
}  // namespace muster::collectives
